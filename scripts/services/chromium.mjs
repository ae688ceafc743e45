import { find } from './find.mjs'

/** @type {import('./find.mjs').Program} */
export const program = {
  name: 'chromium',
  command: 'chromium',
  apt: ['chromium'],
  brew: 'chromium',
  paths: ['/Applications/Chromium.app/Contents/MacOS'],
}

/** The path of a browser to look at pages with. */
export async function chromium() {
  const { command } = await find(program)
  return command
}
