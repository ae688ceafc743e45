// Long commands: what they print goes to a file, a line now and then says that they live, and each has an end.
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'

const SAY_EVERY = 15_000
const KILL_AFTER = 10_000

export const say = (text) => console.error(`matrix: ${text}`)

/**
 * @param {string} what for people
 * @param {string[]} command
 * @param {{ log: string, minutes: number, env?: Record<string, string>, cwd?: string, fails?: boolean }} how `fails`: its
 *   exit code says something else than that it could not be run
 * @returns {Promise<number>} its exit code
 */
export async function step(what, [program, ...args], { log, minutes, env = {}, cwd, fails = false }) {
  const began = Date.now()
  const seconds = () => `${Math.round((Date.now() - began) / 1000)} s`
  const file = openSync(log, 'a')
  // A group of its own, so that it can be ended with everything that it started.
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', file, file],
    detached: true,
  })
  closeSync(file)
  const progress = setInterval(() => say(`${what} (${seconds()})`), SAY_EVERY)
  let late = false
  const end = setTimeout(() => {
    late = true
    endGroup(child, 'SIGTERM')
    setTimeout(() => endGroup(child, 'SIGKILL'), KILL_AFTER).unref()
  }, minutes * 60_000)
  const interrupted = () => endGroup(child, 'SIGTERM')
  process.once('SIGINT', interrupted)
  try {
    const code = await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (status) => resolve(status ?? 1))
    })
    if (late) throw new Error(`${what}: not done after ${minutes} minutes; see ${log}`)
    if (code !== 0 && !fails) throw new Error(`${what}: exit code ${code}; see ${log}\n${tailOf(log)}`)
    say(`${what}: ${seconds()}`)
    return code
  } finally {
    clearInterval(progress)
    clearTimeout(end)
    process.off('SIGINT', interrupted)
  }
}

function endGroup({ pid }, signal) {
  try {
    process.kill(-pid, signal)
  } catch {
    // It ended by itself.
  }
}

const tailOf = (log) => readFileSync(log, 'utf8').trimEnd().split('\n').slice(-8).join('\n')
