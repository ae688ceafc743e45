// What this process has started and not yet ended; see watcher.mjs for why a second process has to know it.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const alive = new Set()
let pipe

/**
 * Has a server process, a container or a temporary folder ended with this process, even if that is killed.
 * @param {{ pid?: number, container?: string, dir?: string }} thing
 * @returns {() => void} call it once the thing is gone
 */
export function guard(thing) {
  alive.add(thing)
  tell()
  return () => {
    if (alive.delete(thing)) tell()
  }
}

function tell() {
  pipe ??= startWatcher()
  pipe.write(`${JSON.stringify([...alive])}\n`)
}

function startWatcher() {
  const program = fileURLToPath(new URL('watcher.mjs', import.meta.url))
  const watcher = spawn(process.execPath, [program], {
    // A session of its own: what ends this process's group must not end the watcher with it.
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
    // Flags meant for this process (an inspector, a loader) are not meant for the watcher.
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  watcher.unref()
  watcher.stdin.unref()
  watcher.stdin.on('error', () => {})
  return watcher.stdin
}
