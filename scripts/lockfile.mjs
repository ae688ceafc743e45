// package-lock.json has to work on every platform and with every mirror of the registry. Two things go wrong with it:
// npm leaves out the native parts of other platforms when the mirror in use does not carry them (then `npm ci` refuses
// the file, and `npm install` elsewhere gets a tool without its program); and it may note download addresses.
//
//   node scripts/lockfile.mjs         fail when something is wrong
//   node scripts/lockfile.mjs --fix   repair it
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const PLATFORM =
  /(android|darwin|freebsd|linux|openharmony|win32)-(arm64|arm|ia32|ppc64|riscv64|s390x|x64)(?:-(gnu|musl))?/
const LIBC = { gnu: 'glibc', musl: 'musl' }

/** Optional dependencies that no entry of the lock file answers, as `[name, version, entry that asks]`. */
function unanswered({ packages }) {
  return Object.entries(packages).flatMap(([path, entry]) =>
    Object.entries(entry.optionalDependencies ?? {})
      .filter(
        ([name]) =>
          !ancestors(path).some((folder) => packages[`${folder}node_modules/${name}`] !== undefined),
      )
      .map(([name, version]) => [name, version, entry]),
  )
}

/** Where Node looks from a folder: `a/node_modules/b` gives itself, `a/` and the root. */
function ancestors(path) {
  const parts = path.split('/node_modules/')
  const inner = parts.map((_, index) => `${parts.slice(0, parts.length - index).join('/node_modules/')}/`)
  return path === '' ? [''] : [...inner, '']
}

/** What npm would have written, but for the checksum. From the name, for that is all we have. */
function entryFor(name, version, { dev }) {
  const [, os, cpu, libc] = PLATFORM.exec(name) ?? []
  return {
    version,
    cpu: [cpu ?? 'wasm32'],
    ...(dev ? { dev } : {}),
    ...(LIBC[libc] === undefined ? {} : { libc: [LIBC[libc]] }),
    optional: true,
    ...(os === undefined ? {} : { os: [os] }),
  }
}

const addressed = ({ packages }) =>
  Object.entries(packages).filter(([, entry]) => /^[a-z+]+:\/\//.test(entry.resolved ?? ''))

/**
 * @param {{ packages: Record<string, { resolved?: string, optionalDependencies?: Record<string, string> }> }} lock
 * @returns {string[]}
 */
export function lockfileFaults(lock) {
  return [
    ...unanswered(lock).map(([name, version]) => `${name}@${version} is not listed`),
    ...addressed(lock).map(([path]) => `${path} has a download address`),
  ]
}

/** Repairs the lock file's content in place. */
export function repairLockfile(lock) {
  for (const [, entry] of addressed(lock)) delete entry.resolved
  for (const [name, version, asking] of unanswered(lock)) {
    lock.packages[`node_modules/${name}`] = entryFor(name, version, asking)
  }
  const byPath = ([a], [b]) => a.localeCompare(b, 'en')
  lock.packages = Object.fromEntries(Object.entries(lock.packages).toSorted(byPath))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = resolve(dirname(fileURLToPath(import.meta.url)), '..', 'package-lock.json')
  const lock = JSON.parse(readFileSync(file, 'utf8'))
  if (process.argv.includes('--fix')) {
    repairLockfile(lock)
    writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
  }
  const faults = lockfileFaults(lock)
  for (const fault of faults) console.error(`package-lock.json: ${fault}`)
  if (faults.length > 0) {
    console.error('Repair it with: npm run lockfile')
    process.exitCode = 1
  }
}
