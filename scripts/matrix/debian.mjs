// A small root of another Debian release with one server in it. Packages come from where this machine's own come from.
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { aptInstall, canApt } from '../services/apt.mjs'
import { locate } from '../services/find.mjs'
import { ids } from '../services/postgres.mjs'
import { step } from './steps.mjs'

const DEBOOTSTRAP = { command: 'debootstrap', apt: ['debootstrap'] }
// A mirror that stands still is signed like any other, and is out of date all the same.
const APT = ['apt-get', '-o', 'Acquire::Check-Valid-Until=false', '-y', '--no-install-recommends']

/** Why no root can be made here; `undefined` if one can. */
export function whyNoRoots() {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'only root can make roots of other releases'
  if (mirror() === undefined) return 'this machine has no packages from Debian'
  if (locate(DEBOOTSTRAP) === undefined && !canApt()) return 'debootstrap is missing'
  return undefined
}

let known

/** The archive that this machine installs from. */
function mirror() {
  known ??= { uri: ask() }
  return known.uri
}

function ask() {
  const format = '$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)'
  try {
    const targets = execFileSync('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], {
      encoding: 'utf8',
    })
    // Not that of security or other updates: those have no release of their own.
    return /^Debian main [a-z]+ (\S+)$/m.exec(targets)?.[1]
  } catch {
    return undefined
  }
}

/** What apt here is told of a proxy is true in the root as well. */
function proxy() {
  const text = execFileSync('apt-config', ['shell', 'PROXY', 'Acquire::http::Proxy'], { encoding: 'utf8' })
  const found = /^PROXY='(.*)'$/m.exec(text)?.[1]
  return found === undefined || found === 'DIRECT' ? {} : { http_proxy: found }
}

/**
 * Makes the folder of an entry: its root, and in `bin` the programs as the services look for them.
 * @param {import('./entries.mjs').Entry} entry
 */
export async function makeRoot(entry, { cache, dir, log }) {
  if (locate(DEBOOTSTRAP) === undefined)
    await aptInstall(DEBOOTSTRAP, () => locate(DEBOOTSTRAP) !== undefined)
  const env = { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C', ...proxy() }
  const base = await makeBase(entry.release, { cache, log, env })
  const root = join(dir, 'root')
  await step(`${entry.id}: copy of ${entry.release}`, ['cp', '-a', '--reflink=auto', base, root], {
    log,
    minutes: 5,
  })
  const chroot = (what, command) => {
    const words = ['sh', '-e', '-c', inside(root, ['/proc', '/dev']), 'sh', ...command]
    return step(`${entry.id}: ${what}`, ['unshare', '--mount', ...words], { log, env, minutes: 15 })
  }
  await chroot('list of packages', [...APT, 'update'])
  await chroot(`installation of ${entry.packages.join(' ')}`, [...APT, 'install', ...entry.packages])
  for (const folder of entry.folders ?? []) mkdirSync(join(root, folder), { recursive: true })
  if (entry.unprivileged) addUser(root)
  for (const [name, path] of Object.entries(entry.programs)) {
    writeWrapper(join(dir, 'bin', name), { root, path: expand(root, path), unprivileged: entry.unprivileged })
  }
}

async function makeBase(release, { cache, log, env }) {
  const base = join(cache, `debian-${release}`)
  if (existsSync(base)) return base
  // Made beside and moved into place: half a root is none.
  const making = `${base}.making`
  rmSync(making, { recursive: true, force: true })
  await step(`Debian ${release}`, ['debootstrap', '--variant=minbase', release, making, mirror()], {
    log,
    env,
    minutes: 20,
  })
  // A server that looks for its own address finds it, also where the machine has no names in a file.
  appendFileSync(join(making, 'etc/hosts'), '127.0.0.1 localhost\n')
  // Debian's own switch against services that are started by their installation.
  const policy = join(making, 'usr/sbin/policy-rc.d')
  writeFileSync(policy, '#!/bin/sh\nexit 101\n')
  chmodSync(policy, 0o755)
  renameSync(making, base)
  return base
}

/** A server that does not run as root runs as whom the tests give its folder to, who has to be somebody in the root too. */
function addUser(root) {
  const [uid, gid] = ids()
  const users = join(root, 'etc/passwd')
  const isThere = readFileSync(users, 'utf8')
    .split('\n')
    .some((line) => Number(line.split(':')[2]) === uid)
  if (!isThere) appendFileSync(users, `holdfast:x:${uid}:${gid}::/nonexistent:/usr/sbin/nologin\n`)
}

function expand(root, path) {
  const [before, after] = path.split('*')
  if (after === undefined) return path
  const [version] = readdirSync(join(root, before))
  return `${before}${version}${after}`
}

/**
 * A script that runs its arguments in a root, with some of this machine's folders. Each time in a mount namespace of its own:
 * nothing has to be cleaned up. And it becomes what it runs, so that signals reach the right process.
 */
function inside(root, folders, as = '') {
  const mounts = folders.map(
    (folder) => `mkdir -p ${root}${folder}; mount --rbind ${folder} ${root}${folder}; `,
  )
  // Where the caller stands, if that is one of the folders.
  const there = 'cd "$0" 2>/dev/null || true; exec "$@"'.replaceAll(/["$]/g, String.raw`\$&`)
  return `${mounts.join('')}exec chroot ${as} ${root} sh -c "${there}" "$PWD" "$@"`
}

/** The program in the root, which shares this machine's folders for what is passing. */
function writeWrapper(file, { root, path, unprivileged = false }) {
  const shared = [...new Set(['/tmp', tmpdir(), '/proc', '/dev'])]
  const [uid, gid] = ids()
  const script = inside(root, shared, unprivileged ? `--userspec=+${uid}:+${gid}` : '')
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `#!/bin/sh\nexec unshare --mount sh -e -c '${script}' sh ${path} "$@"\n`)
  chmodSync(file, 0o755)
}
