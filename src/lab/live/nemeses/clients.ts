import { setTimeout as sleep } from 'node:timers/promises'

import type { Nemesis } from '../nemesis.ts'
import { anywhere, during, longEnough } from './common.ts'

export const none: Nemesis = {
  kind: 'none',
  what: 'nothing happens',
  missing: anywhere,
  strike: (scene) => sleep(scene.stage.ttl),
}

export const kill: Nemesis = {
  kind: 'kill',
  what: 'a holder is killed',
  row: 'holderCrash',
  missing: anywhere,
  async strike(scene) {
    const { client, name } = await scene.lingerer('before the check')
    scene.diary.fault('kill', client.label)
    await client.kill()
    await longEnough(scene, { client, name }, { times: 1, least: 0 })
    await scene.spawn()
  },
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
