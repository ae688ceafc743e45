// Runs a command with other versions of Node than the one installed here: those come as packages, into a cache folder
// of the user's, and never into the lockfile.
//
//   node scripts/node-matrix.mjs 22 24 -- node_modules/vitest/vitest.mjs run test/conformance/sqlite.test.ts
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGE = `node-${process.platform}-${process.arch}`
/** About fifty megabytes. */
const FETCH_MS = 300_000
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'holdfast', 'node')

/**
 * The path of a Node of this major version, fetched if need be.
 * @param {string} major
 */
export function nodeOf(major) {
  const home = join(CACHE, `${PACKAGE}-${major}`)
  const program = join(home, 'node_modules', PACKAGE, 'bin', 'node')
  if (existsSync(program)) return program
  // Made beside and moved into place: another process may be doing the same.
  const making = `${home}.${process.pid}`
  mkdirSync(making, { recursive: true })
  try {
    const args = ['install', '--prefix', making, '--no-save', '--no-package-lock', '--no-audit', '--no-fund']
    execFileSync('npm', [...args, `${PACKAGE}@${major}`], {
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: FETCH_MS,
    })
    renameSync(making, home)
  } catch (error) {
    if (!existsSync(program)) throw error
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
  return program
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const words = process.argv.slice(2)
  const end = words.indexOf('--')
  const majors = words.slice(0, end)
  const command = words.slice(end + 1)
  if (end < 1 || command.length === 0 || majors.some((major) => !/^\d+$/.test(major))) {
    console.error('usage: node scripts/node-matrix.mjs <major>… -- <script> [argument…]')
    process.exit(2)
  }
  for (const major of majors) {
    const node = nodeOf(major)
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
    console.error(`Node ${version}: ${command.join(' ')}`)
    const { status } = spawnSync(node, command, {
      stdio: 'inherit',
      // Programs that it starts are to find the same Node.
      env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` },
    })
    if (status !== 0) process.exitCode = 1
  }
}
