// Server-side scripts are real files (`*.lua`, `*.sql`), written to be read; this turns each folder of them into one
// TypeScript module, so that nothing is read from disk at run time.
//
//   node scripts/gen.mjs           write the modules
//   node scripts/gen.mjs --check   fail when a module is not what its sources say
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const LUA = {
  comment: '--',
  /** Every script says these in its header, before the first line of code. */
  header: ['KEYS', 'ARGV', 'returns'],
}

const SQL = { comment: '--', header: ['params', 'returns'] }

/** One row a folder. */
const FOLDERS = [
  { dir: 'src/stores/redis/scripts', ext: '.lua', out: 'src/stores/redis/scripts.gen.ts', syntax: LUA },
  { dir: 'src/stores/mysql/sql', ext: '.sql', out: 'src/stores/mysql/sql.gen.ts', syntax: SQL },
  { dir: 'src/stores/postgres/sql', ext: '.sql', out: 'src/stores/postgres/sql.gen.ts', syntax: SQL },
  { dir: 'src/stores/sqlite/sql', ext: '.sql', out: 'src/stores/sqlite/sql.gen.ts', syntax: SQL },
]

/** The leading comment lines of a file: its contract. */
function headerOf(text, { comment }) {
  const lines = text.split('\n')
  const end = lines.findIndex((line) => !line.startsWith(comment))
  return lines.slice(0, end === -1 ? lines.length : end).map((line) => line.slice(comment.length).trim())
}

function checkHeader(file, text, syntax) {
  const header = headerOf(text, syntax)
  const purpose = header[0] ?? ''
  const missing = syntax.header.filter(
    (word) => !header.some((line) => line.startsWith(`${word}:`) || line.startsWith(`${word}[`)),
  )
  if (purpose === '' || syntax.header.some((word) => purpose.startsWith(word)))
    missing.unshift('a first line with the purpose')
  if (missing.length > 0) throw new Error(`${file}: the header lacks ${missing.join(', ')}`)
}

/** Replaces `-- @include "name.lua"` by the fragment `lib/name.lua`; a second include of the same one is empty. */
function resolveIncludes(file, { comment }, lib, seen = new Set()) {
  const directive = new RegExp(`^\\s*${comment}\\s*@include\\s+"([\\w.-]+)"\\s*$`)
  return readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => {
      const name = directive.exec(line)?.[1]
      if (name === undefined) return line
      if (seen.has(name)) return ''
      seen.add(name)
      const fragment = join(lib, name)
      if (!existsSync(fragment)) throw new Error(`${file}: no such fragment: ${fragment}`)
      return resolveIncludes(fragment, { comment }, lib, seen)
    })
    .join('\n')
}

/**
 * Drops comments, indentation and empty lines. Only whole-line comments go: a `--` later in a line may be part of a
 * string, and telling the two apart would take a parser for a gain of some bytes.
 */
function strip(text, { comment }) {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith(comment))
    .join('\n')
}

const camel = (name) => name.replace(/[-_]+(\w)/g, (_, letter) => letter.toUpperCase())
const quote = (text) => `'${text.replace(/[\\']/g, '\\$&').replace(/\n/g, '\\n')}'`

function generate(root, { dir, ext, syntax }) {
  const files = readdirSync(join(root, dir))
    .filter((name) => name.endsWith(ext))
    .toSorted()
  const field = ext.slice(1)
  const entries = files.map((name) => {
    const file = join(root, dir, name)
    checkHeader(join(dir, name), readFileSync(file, 'utf8'), syntax)
    const text = strip(resolveIncludes(file, syntax, join(root, dir, 'lib')), syntax)
    return { key: camel(basename(name, ext)), sha1: createHash('sha1').update(text).digest('hex'), text }
  })
  return [
    `// Made by scripts/gen.mjs from ${dir}/*${ext}. Edit those, then: npm run gen`,
    '',
    'export interface Script {',
    '  readonly sha1: string',
    `  readonly ${field}: string`,
    '}',
    '',
    'export interface Scripts {',
    ...entries.map(({ key }) => `  readonly ${key}: Script`),
    '}',
    '',
    'export const scripts: Scripts = {',
    ...entries.flatMap(({ key, sha1, text }) => [
      `  ${key}: {`,
      `    sha1: ${quote(sha1)},`,
      `    ${field}: ${quote(text)},`,
      '  },',
    ]),
    '}',
    '',
  ].join('\n')
}

/**
 * @param {{ root: string, check: boolean, folders?: typeof FOLDERS }} options
 * @returns {string[]} the modules written, or with `check` the modules that are stale
 */
export function gen({ root, check, folders = FOLDERS }) {
  return folders
    .filter(({ dir }) => existsSync(join(root, dir)))
    .filter((folder) => {
      const out = join(root, folder.out)
      const wanted = generate(root, folder)
      if (existsSync(out) && readFileSync(out, 'utf8') === wanted) return false
      if (!check) writeFileSync(out, wanted)
      return true
    })
    .map(({ out }) => out)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const check = process.argv.includes('--check')
  const changed = gen({ root: resolve(dirname(fileURLToPath(import.meta.url)), '..'), check })
  for (const out of changed) console.error(check ? `${out} is stale: npm run gen` : `wrote ${out}`)
  if (check && changed.length > 0) process.exitCode = 1
}
