import { existsSync } from 'node:fs'

/** The compiled twin of a source file: processes that the lab starts run that, wherever the lab itself runs from. */
export function compiled(path: string, from: string): string {
  const { href } = new URL(path, from)
  const built = href.replace('/src/', '/dist/').replace(/\.ts$/, '.js')
  if (!existsSync(new URL(built))) {
    throw new Error('The programs of the lab are compiled and there are none yet: run `npm run build` first.')
  }
  return built
}
