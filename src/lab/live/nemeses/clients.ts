import { setTimeout as sleep } from 'node:timers/promises'

import type { LiveClient } from '../client.ts'
import type { Nemesis } from '../nemesis.ts'
import { Missed } from '../scene.ts'
import type { Scene } from '../scene.ts'
import { anywhere, during, longEnough } from './common.ts'

export const none: Nemesis = {
  kind: 'none',
  what: 'nothing happens',
  missing: anywhere,
  strike: (scene) => sleep(scene.stage.ttl),
}

export const kill: Nemesis = {
  kind: 'kill',
  what: 'somebody in line is killed, then a holder',
  row: 'holderCrash',
  missing: anywhere,
  async strike(scene) {
    await killWaiter(scene)
    const { client, name } = await scene.lingerer('before the check')
    scene.diary.fault('kill', client.label)
    await client.kill()
    await longEnough(scene, { client, name }, { times: 1, least: 0 })
    await scene.spawn()
  },
}

/** Until somebody wants what is held, or it is clear that nobody will. */
const WANTED_MS = 5000
/** Whoever tries, or does not want to wait for long, is done by then. Where the store has a line, it has to show the others in it, too. */
const IN_LINE_MS = 150
const LOOK_MS = 10

/** Whoever dies in line must not be in the way of those behind it. */
async function killWaiter(scene: Scene): Promise<void> {
  const { client: holder, name } = await scene.lingerer('before the check')
  const client = await waiterFor(scene, holder, name)
  if (client !== undefined) {
    scene.diary.fault('kill', client.label, 'it stands in line')
    await client.kill()
  }
  scene.goOn(holder)
  if (client === undefined) throw new Missed(`nobody stood in line behind ${holder.label}`)
  await longEnough(scene, { client, name }, { times: 1, least: 0 })
  await scene.spawn()
}

async function waiterFor(scene: Scene, holder: LiveClient, name: string): Promise<LiveClient | undefined> {
  const end = performance.now() + WANTED_MS
  for (;;) {
    const since = performance.now() - IN_LINE_MS
    const others = scene.working.filter((one) => one !== holder)
    const client = others.find(
      (one) =>
        one.waitsFor === name &&
        one.waitsSince <= since &&
        (!scene.capabilities.queue || scene.stage.foreign !== undefined || scene.onlooker.sawInLine(one)),
    )
    if (client !== undefined || others.length === 0 || performance.now() > end) return client
    await sleep(LOOK_MS)
  }
}

export const pause: Nemesis = {
  kind: 'pause',
  what: 'a holder stands still for longer than its lease',
  row: 'holderPause',
  aimedAt: 'lost update',
  missing: anywhere,
  async strike(scene) {
    const { client, name } = await scene.lingerer('after the check')
    const { ttl: least } = scene.stage
    client.stop()
    const end = scene.diary.faultBegins('pause', client.label, { detail: 'SIGSTOP', least })
    // The second grant of the others shows that the first of them has written.
    const meanwhile = (): Promise<void> => longEnough(scene, { client, name }, { times: 2, least })
    await during(end, meanwhile, () => {
      scene.goOn(client)
      client.resume()
    })
  },
}

export const block: Nemesis = {
  kind: 'block',
  what: "a holder's event loop is blocked for longer than its lease",
  row: 'holderPause',
  aimedAt: 'lost update',
  missing: anywhere,
  async strike(scene) {
    const { client, name } = await scene.lingerer('after the check')
    // Nothing reaches it meanwhile, so it has to be long enough for any store: a session may outlive a lease.
    const ms = scene.expiry * 2 + 1500
    const end = scene.diary.faultBegins('block', client.label, { least: scene.stage.ttl })
    client.send({ do: 'block', ms })
    scene.goOn(client)
    const meanwhile = (): Promise<unknown> =>
      Promise.all([scene.othersGet({ client, name }, 2, ms), sleep(ms)])
    await during(end, meanwhile, () => undefined)
  },
}
