import { setTimeout as sleep } from 'node:timers/promises'

import type { Nemesis } from '../nemesis.ts'
import { Missed } from '../scene.ts'
import { byNetwork, connected, cutOff, during, ended, longEnough, nothingGiven } from './common.ts'

const TELLS_MS = 1000

export const reset: Nemesis = {
  kind: 'reset',
  what: 'connections are reset',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    let done = 0
    for (let times = 0; times < 3; times += 1) {
      const { label, way } = scene.anyone()
      if (way !== undefined && way.connections > 0) {
        const { accepted } = way
        scene.diary.fault('reset', label)
        way.reset()
        done += (await ended(way, accepted)) ? 1 : 0
      }
      await sleep(scene.random.below(200))
    }
    if (done === 0) throw new Missed('no connection was open that could be reset, or not all of them ended')
  },
}

export const cut: Nemesis = {
  kind: 'cut',
  what: 'connections are cut between a request and its reply',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    let done = 0
    for (let times = 0; times < 4; times += 1) {
      const client = scene.anyone()
      // The connection is hurt when the request comes, not when the lab hears of it.
      const since = scene.diary.now()
      const { ended: before = 0 } = client.way ?? {}
      const came = await Promise.race([
        client.way?.cutReply().then(() => true),
        sleep(scene.stage.ttl).then(() => false),
      ])
      if (came === true) scene.diary.fault('cut', client.label, undefined, since)
      // Nothing was asked: what waits for a request must not strike later, when nobody writes it down.
      else client.way?.heal()
      const gone = came === true && client.way !== undefined && (await ended(client.way, before + 1))
      done += gone ? 1 : 0
      await sleep(scene.random.below(150))
    }
    if (done === 0)
      throw new Missed('no request came that could be cut from its reply, or no connection ended with it')
  },
}

export const partition: Nemesis = {
  kind: 'partition',
  what: 'a holder is cut off, and its connections stay half-open',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    const { client, name } = await scene.lingerer('before the check')
    // Its lease runs out, and there is time to see that it says so.
    const least = scene.stage.ttl + TELLS_MS
    const meanwhile = (): Promise<void> => longEnough(scene, { client, name }, { times: 1, least })
    await cutOff(scene, client, meanwhile, least)
    scene.goOn(client)
  },
}

export const delay: Nemesis = {
  kind: 'delay',
  what: 'the replies to a holder are late by more than half a lease, then by more than all of it',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    const { client, name } = await scene.lingerer('before the check')
    const { ttl } = scene.stage
    connected(scene, client)
    const end = scene.diary.faultBegins('delay', client.label, { least: ttl * 2.5 })
    const late = async (): Promise<void> => {
      client.way?.set('replies', { latency: ttl * 0.6 })
      await sleep(ttl * 1.5)
      client.way?.set('replies', { hold: true })
      await longEnough(scene, { client, name }, { times: 1, least: ttl })
    }
    await during(end, late, () => client.way?.heal())
    scene.goOn(client)
  },
}

export const refuse: Nemesis = {
  kind: 'refuse',
  what: 'all connections are reset and new ones refused for a while',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    const { ttl } = scene.stage
    const end = scene.diary.faultBegins('refuse', 'network', { least: ttl })
    for (const { way } of scene.clients) {
      await way?.refuse()
      way?.reset()
    }
    const back = async (): Promise<void> => {
      for (const { way } of scene.clients) await way?.accept()
    }
    await during(end, () => nothingGiven(scene, ttl + 5, 'none of them could connect'), back)
  },
}
