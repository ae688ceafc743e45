import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const { resolve } = createRequire(import.meta.url)

/** By folder, because not every package lets its package.json be imported. */
function versionOf(name) {
  const files = resolve.paths(name).map((folder) => join(folder, name, 'package.json'))
  const file = files.find((one) => existsSync(one))
  return file === undefined ? 'unknown' : JSON.parse(readFileSync(file, 'utf8')).version
}

/** What exactly was measured. */
export function versions(contestants) {
  const packages = contestants.map((one) => one.package).filter((name) => name !== undefined)
  return Object.fromEntries(
    [...new Set(['ioredis', 'redis', ...packages])].map((name) => [name, versionOf(name)]),
  )
}
