// Imports point down only. This is a program of its own rather than a lint pattern, because the rule is about
// where a path leads (`../memory` may be a neighbour or a part of oneself), and because it has to see `import()` too.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const RUNTIME_DOOR = 'src/runtime/env.ts'
const TIME_AND_CHANCE = /^(node:)?(timers|timers\/promises|perf_hooks|crypto)$/

/** Which layers each layer may see, besides itself. A store is a layer of its own: stores do not see each other. */
const DOWN = {
  core: [],
  platform: [],
  transport: ['platform', 'core'],
  stores: ['transport', 'platform', 'core'],
  runtime: ['platform', 'core'],
  locks: ['runtime', 'stores', 'platform', 'core'],
  recipes: ['locks', 'runtime', 'stores', 'core'],
  testkit: ['locks', 'runtime', 'stores/memory', 'core'],
  testing: ['testkit', 'locks', 'runtime', 'stores/memory', 'core'],
  nestjs: ['recipes', 'locks', 'runtime', 'core', 'root'],
  fastify: ['locks', 'runtime', 'core', 'root'],
  server: ['recipes', 'locks', 'runtime', 'stores', 'core'],
  lab: ['testkit', 'locks', 'runtime', 'stores', 'core', 'root'],
  cli: ['lab', 'server', 'recipes', 'testkit', 'locks', 'runtime', 'stores', 'core', 'root'],
  openers: ['stores', 'core'],
  root: ['openers', 'recipes', 'locks', 'runtime', 'stores', 'core'],
}

/** The SQL stores are dialects of one, and a redlock:// URL opens several Redis stores: no others stand on another. */
const STORE_ON_STORE = {
  'stores/quorum': ['stores/redis'],
  'stores/http': ['stores/holdfast'],
  'stores/mysql': ['stores/sql'],
  'stores/postgres': ['stores/sql'],
  'stores/sqlite': ['stores/sql'],
}

/** One job has one file name, in every store's folder: what else it was called before, and how it is. */
const STORE_FILES = [
  [/^(renewals?|renewing|keeping|keep)$/, 'renew'],
  [/^(claiming|attempt|acquire)$/, 'claim'],
  [/^(leaving|releasing|leave)$/, 'release'],
  [/^(listing|looking|describing|inspecting)$/, 'inspect'],
  [/^(watching|listening|listener)$/, 'watch'],
  [/^(errors?|causes?|unknown)$/, 'failure'],
  [/^(address|uri)$/, 'url'],
  [/^(link|channel)$/, 'connection'],
  [/^(downgrading)$/, 'downgrade'],
]

/** @returns {string[]} what is wrong with the name of a file in a store's folder */
export function nameFaults(file) {
  const [, name] = /^src\/stores\/[^/]+\/([^/]+)\.ts$/.exec(file) ?? []
  const [, right] = STORE_FILES.find(([wrong]) => name !== undefined && wrong.test(name)) ?? []
  return right === undefined ? [] : [`${file}: what does this is called ${right}.ts in every store's folder`]
}

/** The layer of a path below src: `core`, `stores/redis`, … and `root` for the entry files. */
function layerOf(path) {
  const [first, second, third] = path.split('/')
  if (second === undefined) return 'root'
  return first === 'stores' && third !== undefined ? `stores/${second}` : first
}

function mayImport(from, to) {
  if (from === to) return true
  const allowed = [...(DOWN[from.split('/')[0]] ?? []), ...(STORE_ON_STORE[from] ?? [])]
  return allowed.some((layer) => to === layer || to.startsWith(`${layer}/`))
}

/** Every module a text names: static, re-exported, for types only, for effect, or dynamic with a literal. */
function importsOf(text) {
  const code = text.replace(/^\s*(\/\/.*|\/?\*.*)$/gm, '')
  const forms = [
    /\b(?:import|export)\s[^'";]*?\sfrom\s*['"]([^'"]+)['"]/g,
    /\bimport\s*['"]([^'"]+)['"]/g,
    /\bimport\s*\(\s*['"]([^'"]+)['"]/g,
  ]
  return forms.flatMap((form) => [...code.matchAll(form)].map((match) => match[1]))
}

/**
 * What is wrong with the imports of one source file, as sentences.
 * @param {string} file path from the repository's root, with forward slashes
 * @param {string} text
 * @returns {string[]}
 */
export function layerFaults(file, text) {
  const here = file.replace(/^src\//, '')
  const from = layerOf(here)
  return importsOf(text).flatMap((specifier) => {
    if (specifier.startsWith('.')) {
      const to = layerOf(posix.join(posix.dirname(here), specifier))
      return mayImport(from, to) ? [] : [`${file}: ${from} may not import ${to} (${specifier})`]
    }
    if (from === 'core') return [`${file}: core imports nothing but core (${specifier})`]
    const guarded = from === 'runtime' || from === 'locks'
    if (guarded && file !== RUNTIME_DOOR && TIME_AND_CHANCE.test(specifier)) {
      return [`${file}: time and randomness come through ${RUNTIME_DOOR} (${specifier})`]
    }
    return []
  })
}

const OF_A_CLAIM =
  'state|whenBusy|tokens|inFlight|doubtful|attempts|unheard|since|validUntil|mark|contended|heardAt|era|nextToken|tokensLeft|sections|unyielded|users|lease|leases|only|reserved|told|revoked|lane'
const WRITES = new RegExp(
  String.raw`\b(?:claim|next|open|each)\.(${OF_A_CLAIM})\s*(?:=(?![=>])|[+-]=|\+\+|--|\|\|=|\?\?=)`,
  'g',
)

/**
 * A claim has one writer: itself. Others tell it what has happened, so that what it can be is read in one place.
 * @returns {string[]} where another file of the runtime writes a field of a claim
 */
export function writerFaults(file, text) {
  if (!/^src\/(runtime|locks)\//.test(file) || file === 'src/runtime/claim.ts') return []
  return [...text.matchAll(WRITES)].map(
    ([, field]) => `${file}: only src/runtime/claim.ts writes a claim's ${field}`,
  )
}

/** @returns {string[]} the faults of every TypeScript file below `root`/src */
export function checkLayers(root) {
  const src = join(root, 'src')
  return readdirSync(src, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .flatMap((path) => {
      const file = relative(root, path).split(sep).join('/')
      const text = readFileSync(path, 'utf8')
      return [...layerFaults(file, text), ...writerFaults(file, text), ...nameFaults(file)]
    })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const faults = checkLayers(resolve(dirname(fileURLToPath(import.meta.url)), '..'))
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length === 0 ? 0 : 1
}
