// Takes locks of a lock server without end, and lets a file system be the judge: whoever has a lock makes a file that must
// not be there yet. It knows nothing of leases, servers or time. Ends when its parent says so, and tells what it saw.
import { randomBytes } from 'node:crypto'
import { appendFileSync, closeSync, openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { Holdfast } from '../../dist/index.js'
import { holdfastStore } from '../../dist/stores/holdfast/index.js'

const [url, folder] = process.argv.slice(2)
const seen = { overlaps: [], lost: [], errors: [] }
let running = true

const store = holdfastStore(url)
// Longer than a restart takes on a machine that has a lot else to do.
const TTL_MS = 60_000
const holdfast = new Holdfast(store, { ttl: TTL_MS })

/** One at a time, with a larger token than the one before. */
async function section(name, token, work) {
  const witness = join(folder, `${name}.inside`)
  try {
    closeSync(openSync(witness, 'wx'))
  } catch (error) {
    return void seen.overlaps.push(`${name}: ${error.code}`)
  }
  appendFileSync(join(folder, `${name}.tokens`), `${token}\n`)
  await work()
  unlinkSync(witness)
}

async function library(name, hold) {
  while (running) {
    try {
      const lease = await holdfast.mutex(name).acquire({ wait: 200_000 })
      await section(name, lease.token, () =>
        sleep(hold, undefined, { signal: stopped.signal }).catch(() => undefined),
      )
      if (!lease.held) seen.lost.push(name)
      if ((await lease.release()) === 'expired') seen.lost.push(`${name}, at its release`)
    } catch (error) {
      seen.errors.push(`${name}: ${error.code ?? error}`)
    }
  }
}

const api = url.replace('holdfast://', 'http://')
const headers = { 'content-type': 'application/json', 'holdfast-request': '1' }

/** Asks until there is an answer that is not the server's own trouble. */
async function ask(route, body) {
  for (;;) {
    try {
      const response = await fetch(`${api}/v1/${route}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      if (response.status !== 503) return { status: response.status, body: await response.json() }
      await response.arrayBuffer()
    } catch {
      // Nobody listens, or the answer was cut off.
    }
    await sleep(50)
  }
}

async function http(name) {
  while (running) {
    const lease = `${randomBytes(18).toString('base64url')}.${randomBytes(18).toString('base64url')}`
    const granted = await ask('acquire', { name, lease, ttl: TTL_MS, wait: 30_000 })
    if (granted.status !== 200) {
      if (granted.body.error?.code !== 'LOCK_TIMEOUT')
        seen.errors.push(`${name}: ${JSON.stringify(granted.body)}`)
      continue
    }
    await section(name, granted.body.token, async () => {
      await sleep(20)
      const renewed = await ask('renew', { name, lease, ttl: TTL_MS })
      if (renewed.status !== 200) seen.lost.push(`${name}: ${JSON.stringify(renewed.body)}`)
    })
    await ask('release', { name, lease })
  }
}

const stopped = new AbortController()
const work = [
  library('quick', 3),
  library('quick', 3),
  library('shared-by-both-doors', 10),
  library('long', 6000),
  http('shared-by-both-doors'),
  http('http'),
]

async function end() {
  running = false
  stopped.abort()
  await Promise.all(work)
  await holdfast.close()
  await store.close()
  process.send(seen, () => process.exit())
}

process.on('message', () => void end())
process.on('disconnect', () => process.exit())
