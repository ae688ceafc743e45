// The package once more as CommonJS, for those that cannot load modules: Jest, TypeScript that is told `module: node16`
// in a CommonJS project. Node takes the modules for `require` too (the condition `module-sync`), so that a process
// has one copy of everything. docs/adr/0009-commonjs.md has the reasons. Expects dist; part of `npm run build`.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import { rolldown } from 'rolldown'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const { exports: entries, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const folder = 'dist/commonjs'
const drivers = Object.keys(peerDependencies).map((name) => new RegExp(`^${name}(/|$)`))

/** The name of each entry that has both forms, with its module. */
const input = {}
for (const { require: required, default: module } of Object.values(entries)) {
  if (required === undefined) continue
  input[required.default.replace(`./${folder}/`, '').replace(/\.cjs$/, '')] = join(root, module)
}

const quick = createRequire(import.meta.url)('../dist/cli/quick.cjs')
/** Programs that are started again and again, and load faster from here. */
const programs = { command: join(root, 'dist/cli/main.js'), keeper: join(root, 'dist/cli/keeper/main.js') }
/** `start.cjs` gives those to dist/cli/main.js. */
const slow = new RegExp(`/dist/cli/commands/(?!(${quick.join('|')})\\.js$)[^/]+$`)

const bundle = await rolldown({
  input: { ...input, ...programs },
  platform: 'node',
  external: [/^node:/, ...drivers, slow],
})
await bundle.write({
  dir: join(root, folder),
  format: 'cjs',
  entryFileNames: '[name].cjs',
  chunkFileNames: 'shared/[name].cjs',
  // Jest knows no `import()`.
  dynamicImportInCjs: false,
  // They are in the modules beside it.
  comments: false,
})
await bundle.close()

for (const [name, file] of Object.entries(input)) {
  writeFileSync(join(root, folder, `${name}.d.cts`), await declarations(file))
}

/** Types are those of the module: there is one `Holdfast`, whichever way it was loaded. */
async function declarations(file) {
  const from = `'../${file.slice(join(root, 'dist/').length)}' with { 'resolution-mode': 'import' }`
  const values = Object.entries(await import(pathToFileURL(file).href))
  return [
    `import type * as module from ${from}`,
    `export type * from ${from}`,
    ...values.flatMap(([name, value]) => [
      `export declare const ${name}: typeof module.${name}`,
      ...(isClass(value) ? [`export type ${name} = module.${name}`] : []),
    ]),
    '',
  ].join('\n')
}

function isClass(value) {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value))
}
