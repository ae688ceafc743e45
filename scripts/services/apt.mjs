// apt-get, used politely: one installation at a time on the machine, no service started by it, and progress on
// stderr, for it can take a minute.
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const LOCK = join(tmpdir(), 'holdfast-apt.lock')

// Packages of servers start them when installed. Debian's own switch against that is a program which says no.
const SCRIPT = `
set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT INT TERM HUP
  printf '#!/bin/sh\\nexit 101\\n' > "$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
get() { apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" < /dev/null; }
get install "$@" || { get update && get install "$@"; }
`

const say = (text) => process.stderr.write(`holdfast: ${text}\n`)

/** The words that go before a command to run it as root; `undefined` when there is no way without a password. */
function asRoot() {
  if (process.getuid?.() === 0) return []
  return succeeds('sudo', ['-n', 'true']) ? ['sudo', '-n'] : undefined
}

let allowed

/** HOLDFAST_INSTALL=0 keeps hands off the machine. */
export function canApt() {
  allowed ??=
    process.platform === 'linux' &&
    process.env.HOLDFAST_INSTALL !== '0' &&
    succeeds('apt-get', ['--version']) &&
    asRoot() !== undefined
  return allowed
}

/**
 * @param {import('./find.mjs').Program} program
 * @param {() => boolean} isThere asked again once it is our turn: another process may have installed it meanwhile
 */
export async function aptInstall({ command, apt }, isThere) {
  const unlock = await lock()
  try {
    if (isThere()) return
    say(`${command} is missing; installing with apt-get: ${apt.join(' ')}`)
    const started = Date.now()
    const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`
    const progress = setInterval(() => say(`still installing ${apt.join(' ')} (${seconds()})`), 10_000)
    const { code, output } = await runInstaller(apt).finally(() => clearInterval(progress))
    if (code === 0) say(`installed ${apt.join(' ')} in ${seconds()}`)
    else say(`apt-get could not install ${apt.join(' ')}:\n${output.split('\n').slice(-12).join('\n')}`)
  } finally {
    unlock()
  }
}

function runInstaller(packages) {
  const [command, ...args] = [...asRoot(), 'sh', '-c', SCRIPT, 'install', ...packages]
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
    child.once('error', (error) => resolve({ code: -1, output: error.message }))
    child.once('close', (code) => resolve({ code, output }))
  })
}

/** A file made by whoever may go first, with its process id, so that one left by a dead process can be seen. */
async function lock() {
  for (let waited = false; ; waited = true) {
    try {
      writeFileSync(LOCK, String(process.pid), { flag: 'wx' })
      return () => rmSync(LOCK, { force: true })
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    if (!ownerLives()) rmSync(LOCK, { force: true })
    else if (!waited) say('waiting for another installation to end')
    await sleep(200)
  }
}

function ownerLives() {
  try {
    process.kill(Number(readFileSync(LOCK, 'utf8')), 0)
    return true
  } catch (error) {
    // EPERM: it lives, and is somebody else's. ENOENT: it has just ended its turn, and we try again.
    return error.code !== 'ESRCH'
  }
}

function succeeds(command, args) {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
