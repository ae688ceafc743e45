import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Where drivers are looked for, if that is not where the user is: `npm install` in a project does not help a command that is
 * installed globally. It does not look in the project by itself: whoever can write to a folder (/tmp) could have code run by all who call it there.
 */
export function elsewhere(folder: string = packageFolder(), here: string = whereWeAre()): string | undefined {
  // pnpm has one node_modules in another.
  const [project = ''] = folder.split(`${sep}node_modules${sep}`)
  if (`${here}${sep}`.startsWith(`${project}${sep}`)) return undefined
  return (
    `this holdfast is in ${folder}, and looks for drivers from there: install holdfast in your project, too ` +
    '(npm install holdfast; npx holdfast), or the driver where this one is (npm install -g …)'
  )
}

/** From dist/cli and from dist/commonjs alike. Where there is no `import.meta`, there is a `__filename`. */
function packageFolder(): string {
  const url = import.meta.url as string | undefined
  const file = url === undefined ? __filename : fileURLToPath(url)
  return file.slice(0, file.lastIndexOf(`${sep}dist${sep}`))
}

function whereWeAre(): string {
  try {
    return process.cwd()
  } catch {
    // It was deleted.
    return ''
  }
}
