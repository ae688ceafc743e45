// The build of an earlier commit, kept in the tree, so that every test run can put it into one fleet with the present one, also
// from a clone without history: test/fleet. After a release, pack that one:
//
//   node scripts/earlier-build.mjs <commit>
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const packed = join(root, 'test/fleet/earlier-build.tgz')
const folder = () => mkdtempSync(join(tmpdir(), 'holdfast-earlier-'))

/** Unpacks it into a folder of its own: `{ dist, remove }`. */
export function earlierBuild() {
  const dir = folder()
  execFileSync('tar', ['-xzf', packed, '-C', dir])
  // Drivers are found where the present build finds them.
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'))
  return { dist: join(dir, 'dist'), remove: () => rmSync(dir, { recursive: true, force: true }) }
}

/** What a fleet uses of a build: no types, no maps, none of the tools. */
const TSC = [
  '-p',
  'tsconfig.build.json',
  '--removeComments',
  ...['declaration', 'sourceMap', 'inlineSources', 'isolatedDeclarations'].flatMap((off) => [
    `--${off}`,
    'false',
  ]),
]
const TOOLS = ['dist/lab', 'dist/cli', 'dist/testkit']
/** The same commit gives the same bytes. */
const TAR = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']

function pack(commit) {
  const dir = folder()
  const run = (program, args, options = {}) => execFileSync(program, args, { cwd: dir, ...options })
  const sources = ['src', 'tsconfig.json', 'tsconfig.build.json', 'package.json']
  run('tar', ['-x'], {
    input: execFileSync('git', ['archive', commit, ...sources], { cwd: root, maxBuffer: 2 ** 30 }),
  })
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'))
  run(join(root, 'node_modules/.bin/tsc'), TSC, { stdio: 'inherit' })
  for (const tool of TOOLS) rmSync(join(dir, tool), { recursive: true })
  run('tar', [...TAR, '-I', 'gzip -9n', '-cf', packed, 'dist', 'package.json'])
  rmSync(dir, { recursive: true })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , commit] = process.argv
  if (commit === undefined) throw new Error('which commit? node scripts/earlier-build.mjs <commit>')
  pack(commit)
}
