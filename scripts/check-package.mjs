// What npm would publish, looked at from outside: packed, unpacked next to nothing but its own name, and used.
// Expects a build (`npm run check:package` makes one).
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { apiReports } from './api.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
/** They are for those who have the framework. */
const OF_FRAMEWORKS = ['./nestjs', './fastify']
const entries = Object.keys(manifest.exports)
  .filter((subpath) => subpath !== './package.json' && !OF_FRAMEWORKS.includes(subpath))
  .map((subpath) => manifest.name + subpath.slice(1))

/** All that may be in the package. */
const EXPECTED = [
  /^(package\.json|LICENSE|(README|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md)$/,
  /^(docs|deploy)\//,
  /^dist\/.*\.(js|d\.ts|cjs|d\.cts)$/,
  /^dist\/dashboard\//,
]

const temp = mkdtempSync(join(tmpdir(), 'holdfast-package-'))
const consumer = join(temp, 'consumer')

/** Runs a program; what it printed is the error's message when it fails. */
function run(command, args, options = {}) {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe', cwd: root, ...options })
  } catch (error) {
    throw new Error([error.stdout, error.stderr].filter(Boolean).join('\n').trim() || error.message)
  }
}

/** A tool of this repository. */
const tool = (name, args, options) => run(join(root, 'node_modules/.bin', name), args, options)

function fail(faults) {
  if (faults.length > 0) throw new Error(faults.join('\n'))
}

/** Where Node begins: what is imported by name, from outside and inside, the command, and the programs that it starts. */
const STARTS = [
  ...new Set(
    [manifest.exports, manifest.imports, manifest.bin]
      .flatMap(leaves)
      .filter((path) => /\.c?js$/.test(path))
      .map((path) => path.slice(2)),
  ),
  'dist/commonjs/command.cjs',
  'dist/commonjs/keeper.cjs',
  'dist/cli/demo/seller.js',
  'dist/lab/live/worker.js',
  'dist/lab/resource/server.js',
  'dist/testkit/taker-child.js',
]

let packed

const checks = {
  'it packs': () => {
    ;[packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', temp]))
    run('tar', ['-xzf', join(temp, packed.filename), '-C', temp])
    mkdirSync(join(consumer, 'node_modules/@types'), { recursive: true })
    cpSync(join(temp, 'package'), join(consumer, 'node_modules', manifest.name), { recursive: true })
    symlinkSync(join(root, 'node_modules/@types/node'), join(consumer, 'node_modules/@types/node'))
    return `${packed.entryCount} files, ${Math.ceil(packed.size / 1024)} kB packed`
  },

  'every export is a file in it': () => {
    const files = new Set(packed.files.map(({ path }) => `./${path}`))
    const targets = [
      manifest.exports,
      manifest.bin,
      manifest.main,
      manifest.types,
      manifest.typesVersions,
    ].flatMap(leaves)
    fail(
      targets
        .filter((target) => !files.has(target.replace(/^(?!\.\/)/, './')))
        .map((target) => `missing: ${target}`),
    )
  },

  'nothing else is in it': () => {
    const paths = packed.files.map(({ path }) => path)
    fail(
      paths.filter((path) => !EXPECTED.some((pattern) => pattern.test(path))).map((path) => `stray: ${path}`),
    )
  },

  'every link of its documents leads to something in it': () => {
    const documents = packed.files.map(({ path }) => path).filter((path) => path.endsWith('.md'))
    const missing = documents.flatMap((path) => {
      const text = readFileSync(join(temp, 'package', path), 'utf8')
      const links = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, link]) => link)
      return links
        .filter((link) => !/^[a-z]+:/.test(link) && !existsSync(join(temp, 'package', dirname(path), link)))
        .map((link) => `${path}: ${link}`)
    })
    fail(missing)
    return `${documents.length} documents`
  },

  'no module in it lacks another, or is there for nobody': () => {
    const modules = packed.files.map(({ path }) => path).filter((path) => /\.c?js$/.test(path))
    const reached = new Set()
    const lacking = []
    const reach = (path, from) => {
      if (reached.has(path)) return
      if (!modules.includes(path)) return void lacking.push(`${from} lacks ${path}`)
      reached.add(path)
      for (const next of importsOf(path)) reach(next, path)
    }
    for (const path of STARTS) reach(path, 'the package')
    fail([
      ...lacking,
      ...modules.filter((path) => !reached.has(path) && !isEmpty(path)).map((path) => `of no use: ${path}`),
    ])
    return `${modules.length} modules`
  },

  'the command starts, also what of it is loaded another way': () => {
    const command = join(consumer, 'node_modules', manifest.name, manifest.bin.holdfast)
    const said = run(process.execPath, [command, '--version']).trim()
    if (said !== manifest.version) throw new Error(`it says it is ${said}`)
    for (const name of ['run', 'lab', 'conformance', 'demo', 'serve', 'doctor'])
      run(process.execPath, [command, name, '--help'])
  },

  publint: () => void tool('publint', ['--strict', join(temp, 'package')]),

  'are the types wrong': () =>
    void tool('attw', [join(temp, packed.filename), '--exclude-entrypoints', 'testkit']),

  'the public surface is what etc/*.api.md say': () => fail(apiReports({ root, update: false })),

  'types compile without any driver, as nodenext': () =>
    compile({ module: 'nodenext', moduleResolution: 'nodenext' }),

  'types compile without any driver, as node16': () => compile({ module: 'node16' }),

  'types compile without any driver, as bundler': () =>
    compile({ module: 'esnext', moduleResolution: 'bundler' }),

  'every entry can be imported without any driver': () => {
    writeFileSync(join(consumer, 'use.mjs'), entries.map((entry) => `await import('${entry}')\n`).join(''))
    run(process.execPath, ['use.mjs'], { cwd: consumer })
  },

  'every entry can be required': () => {
    writeFileSync(join(consumer, 'use.cjs'), entries.map((entry) => `require('${entry}')\n`).join(''))
    run(process.execPath, ['use.cjs'], { cwd: consumer })
  },

  'require gives the same objects as import': () => {
    const same = (entry) => `
      import('${entry}').then((module) => {
        for (const name of Object.keys(module))
          if (require('${entry}')[name] !== module[name]) throw new Error('${entry}: two copies of ' + name)
      })`
    writeFileSync(join(consumer, 'same.cjs'), entries.map(same).join('\n'))
    run(process.execPath, ['same.cjs'], { cwd: consumer })
  },

  'every entry of the CommonJS form can be loaded, and exports the same names': () => {
    const pairs = Object.entries(manifest.exports)
      .filter(([subpath, target]) => target.require !== undefined && !OF_FRAMEWORKS.includes(subpath))
      .map(([, target]) => target)
    const lines = pairs.map(
      ({ require: { default: cjs }, default: module }) => `
      import('./node_modules/${manifest.name}/${module}').then((there) => {
        const here = Object.keys(require('./node_modules/${manifest.name}/${cjs}')).toSorted()
        require('node:assert').deepStrictEqual(here, Object.keys(there).toSorted())
      })`,
    )
    writeFileSync(join(consumer, 'commonjs.cjs'), lines.join('\n'))
    run(process.execPath, ['commonjs.cjs'], { cwd: consumer })
    return `${pairs.length} entries`
  },
}

function leaves(target) {
  return typeof target === 'string' ? [target] : Object.values(target).flatMap(leaves)
}

/** The modules of the package that one of them names. `start.cjs` gives some commands to modules, so that the CommonJS form is without. */
function importsOf(path) {
  const text = readFileSync(join(temp, 'package', path), 'utf8')
  const named = [...text.matchAll(/(?:\bfrom |\bimport |\bimport\(|\brequire\()\s*['"](\.[^'"]+)['"]/g)]
  return named
    .map(([, name]) => posix.join(posix.dirname(path), name))
    .filter((name) => !name.startsWith('dist/commonjs/cli/'))
}

/** What is left of a file that holds nothing but types. */
function isEmpty(path) {
  return readFileSync(join(temp, 'package', path), 'utf8').trim() === 'export {};'
}

/** The strictest reader: every declaration file is checked, and nothing is installed beside the types of Node. */
function compile(options) {
  writeFileSync(join(consumer, 'package.json'), '{ "type": "module", "private": true }\n')
  const uses = entries.map(
    (entry, index) => `import * as entry${index} from '${entry}'\nconsole.log(entry${index})\n`,
  )
  writeFileSync(join(consumer, 'use.ts'), uses.join(''))
  const compilerOptions = {
    ...options,
    target: 'es2022',
    lib: ['es2022'],
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  }
  writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }))
  tool('tsc', ['--project', consumer])
}

if (!existsSync(join(root, 'dist'))) {
  console.error('There is no build to look at: npm run build')
  process.exit(1)
}
try {
  for (const [name, check] of Object.entries(checks)) {
    try {
      const note = check()
      console.log(`ok    ${name}${note === undefined ? '' : ` (${note})`}`)
    } catch (error) {
      console.log(`FAIL  ${name}\n${error.message.replace(/^/gm, '        ')}`)
      process.exitCode = 1
      // Without a package there is nothing to look at.
      if (packed === undefined) break
    }
  }
} finally {
  rmSync(temp, { recursive: true, force: true })
}
