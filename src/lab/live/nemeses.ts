import { setTimeout as sleep } from 'node:timers/promises'

import type { Guarantees } from '../../core/contract.ts'
import type { LiveClient } from './client.ts'
import type { Scene, Stage } from './scene.ts'
import { endpointsOf } from './url.ts'

/** One way to hurt a run. */
export interface Nemesis {
  readonly kind: string
  readonly what: string
  /** The row of the table of guarantees that says what holds. Absent: everything does. */
  readonly row?: keyof Guarantees
  /** Aimed so well that what cannot hold is seen to break, and by which check. */
  readonly aimedAt?: 'exclusivity' | 'lost update'
  /** A ttl that leaves room for what has to happen while somebody still believes. */
  readonly ttl?: number
  /** Why it cannot be done on this stage; undefined if it can. */
  missing(stage: Stage): string | undefined
  strike(scene: Scene): Promise<void>
}

const anywhere = (): undefined => undefined
const byNetwork = ({ url }: Stage): string | undefined =>
  endpointsOf(url) === undefined ? 'its connections cannot be led through a proxy' : undefined
const byServer = ({ server }: Stage): string | undefined =>
  server === undefined ? 'the lab did not start this server' : undefined

/** Nobody else gets anywhere near this in a run that is as it should be. */
const SLACK_MS = 5000

/** Cuts a client off on both ways, without either side being told, and back again. */
async function cutOff(scene: Scene, client: LiveClient, meanwhile: () => Promise<unknown>): Promise<void> {
  const end = scene.diary.faultBegins('partition', client.label, 'nothing gets through')
  client.way?.set('requests', { blackhole: true })
  client.way?.set('replies', { blackhole: true })
  try {
    await meanwhile()
  } finally {
    client.way?.heal()
    // Bytes that were swallowed are missing for good: the connections that lost them are of no use.
    client.way?.reset()
    end()
  }
}

const none: Nemesis = {
  kind: 'none',
  what: 'nothing happens',
  missing: anywhere,
  strike: (scene) => sleep(scene.stage.ttl),
}

const kill: Nemesis = {
  kind: 'kill',
  what: 'a holder is killed',
  row: 'holderCrash',
  missing: anywhere,
  async strike(scene) {
    const client = await scene.lingerer('before the check')
    scene.diary.fault('kill', client.label)
    await client.kill()
    await scene.granted(client, 1, scene.expiry + SLACK_MS)
    await scene.spawn()
  },
}

const pause: Nemesis = {
  kind: 'pause',
  what: 'a holder stands still for longer than its lease',
  row: 'holderPause',
  aimedAt: 'lost update',
  missing: anywhere,
  async strike(scene) {
    const client = await scene.lingerer('after the check')
    client.stop()
    const end = scene.diary.faultBegins('pause', client.label, 'SIGSTOP')
    // The second grant of the others shows that the first of them has written.
    await scene.granted(client, 2, scene.expiry + SLACK_MS)
    scene.goOn(client)
    client.resume()
    end()
  },
}

const block: Nemesis = {
  kind: 'block',
  what: "a holder's event loop is blocked for longer than its lease",
  row: 'holderPause',
  aimedAt: 'lost update',
  missing: anywhere,
  async strike(scene) {
    const client = await scene.lingerer('after the check')
    const end = scene.diary.faultBegins('block', client.label)
    // Nothing reaches it meanwhile, so it has to be long enough for any store: a session may outlive a lease.
    const ms = scene.expiry * 2 + 1500
    client.send({ do: 'block', ms })
    scene.goOn(client)
    await sleep(ms)
    end()
  },
}

const reset: Nemesis = {
  kind: 'reset',
  what: 'connections are reset',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    for (let times = 0; times < 3; times += 1) {
      const client = scene.anyone()
      scene.diary.fault('reset', client.label)
      client.way?.reset()
      await sleep(scene.random.below(200))
    }
  },
}

const cut: Nemesis = {
  kind: 'cut',
  what: 'connections are cut between a request and its reply',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    for (let times = 0; times < 4; times += 1) {
      const client = scene.anyone()
      const done = client.way?.cutReply()
      await Promise.race([done, sleep(scene.stage.ttl)])
      scene.diary.fault('cut', client.label)
      await sleep(scene.random.below(150))
    }
  },
}

const blackhole: Nemesis = {
  kind: 'partition',
  what: 'a holder is cut off, and its connections stay half-open',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    const client = await scene.lingerer('before the check')
    await cutOff(scene, client, () => scene.granted(client, 1, scene.expiry + SLACK_MS))
    scene.goOn(client)
  },
}

const delay: Nemesis = {
  kind: 'delay',
  what: 'the replies to a holder are late by more than half a lease, then by more than all of it',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    const client = await scene.lingerer('before the check')
    const { ttl } = scene.stage
    const end = scene.diary.faultBegins('delay', client.label)
    client.way?.set('replies', { latency: ttl * 0.6 })
    await sleep(ttl * 1.5)
    client.way?.set('replies', { hold: true })
    await scene.granted(client, 1, scene.expiry + SLACK_MS)
    client.way?.heal()
    end()
    scene.goOn(client)
  },
}

const refuse: Nemesis = {
  kind: 'refuse',
  what: 'all connections are reset and new ones refused for a while',
  row: 'partition',
  missing: byNetwork,
  async strike(scene) {
    const end = scene.diary.faultBegins('refuse', 'network')
    for (const { way } of scene.clients) {
      await way?.refuse()
      way?.reset()
    }
    await sleep(scene.stage.ttl)
    for (const { way } of scene.clients) await way?.accept()
    end()
  },
}

const serverPause: Nemesis = {
  kind: 'server-pause',
  what: 'the server stands still for longer than a lease',
  row: 'partition',
  missing: byServer,
  async strike(scene) {
    const end = scene.diary.faultBegins('server-pause', 'server', 'SIGSTOP')
    await scene.stage.server?.pause()
    await sleep(scene.stage.ttl * 1.5)
    await scene.stage.server?.resume()
    end()
  },
}

const restart: Nemesis = {
  kind: 'restart',
  what: 'the server is killed and starts again with its data',
  row: 'storeRestart',
  missing: byServer,
  async strike(scene) {
    const client = await scene.lingerer('before the check')
    const end = scene.diary.faultBegins('restart', 'server', 'SIGKILL, data kept')
    await scene.stage.server?.kill('SIGKILL')
    await scene.stage.server?.restart({ keepData: true })
    end()
    scene.goOn(client)
  },
}

const wipe: Nemesis = {
  kind: 'wipe',
  what: 'the server is killed and starts again without its data, while the holder is cut off',
  row: 'storeRestart',
  aimedAt: 'exclusivity',
  ttl: 5000,
  missing: byServer,
  async strike(scene) {
    const client = await scene.lingerer('before the check')
    await cutOff(scene, client, async () => {
      const end = scene.diary.faultBegins('wipe', 'server', 'SIGKILL, data lost')
      await scene.stage.server?.kill('SIGKILL')
      await scene.stage.server?.restart({ keepData: false })
      end()
      await scene.granted(client, 2, scene.expiry + SLACK_MS)
    })
    scene.goOn(client)
  },
}

const clockJump: Nemesis = {
  kind: 'clock-jump',
  what: "the server's clock jumps ahead by more than a lease, while the holder is cut off",
  row: 'storeClockJump',
  aimedAt: 'exclusivity',
  ttl: 5000,
  missing: (stage) =>
    byServer(stage) ?? (stage.clock === undefined ? "the server's clock cannot be moved here" : undefined),
  async strike(scene) {
    const client = await scene.lingerer('before the check')
    await cutOff(scene, client, async () => {
      scene.stage.clock?.jump(scene.expiry * 2)
      scene.diary.fault('clock-jump', 'server', `${(scene.expiry * 2) / 1000} s ahead`)
      await scene.granted(client, 2, scene.expiry + SLACK_MS)
    })
    scene.goOn(client)
  },
}

/** Something that the lab has the server do, again and again while clients are at work. */
function commanded(
  about: Pick<Nemesis, 'kind' | 'what' | 'row'>,
  command: 'flushScripts' | 'dropConnections',
  { times, withinMs, cannot }: { readonly times: number; readonly withinMs: number; readonly cannot: string },
): Nemesis {
  return {
    ...about,
    missing: ({ admin }) => (admin?.[command] === undefined ? cannot : undefined),
    async strike({ stage, diary, random }) {
      for (let time = 0; time < times; time += 1) {
        await stage.admin?.[command]?.()
        diary.fault(about.kind, 'server')
        await sleep(random.below(withinMs))
      }
    },
  }
}

const flushScripts = commanded(
  { kind: 'script-flush', what: 'the server forgets its scripts' },
  'flushScripts',
  { times: 5, withinMs: 150, cannot: 'it has no scripts, or the lab may not flush them' },
)

const dropConnections = commanded(
  { kind: 'client-kill', what: 'the server ends all connections of its clients', row: 'partition' },
  'dropConnections',
  { times: 3, withinMs: 300, cannot: 'it has no command for that, or the lab may not give it' },
)

const failover: Nemesis = {
  kind: 'failover',
  what: 'the server that leads is killed, and another one takes its place',
  row: 'failover',
  missing: ({ admin }) =>
    admin?.failover === undefined ? 'there is no other server to take its place' : undefined,
  async strike(scene) {
    const client = await scene.lingerer('before the check')
    const end = scene.diary.faultBegins('failover', 'server', 'SIGKILL of the leader')
    await scene.stage.admin?.failover?.()
    end()
    scene.goOn(client)
  },
}

/** Every way there is, the gentle ones first. */
export const NEMESES: readonly Nemesis[] = [
  none,
  kill,
  pause,
  block,
  reset,
  cut,
  blackhole,
  delay,
  refuse,
  serverPause,
  restart,
  wipe,
  clockJump,
  flushScripts,
  dropConnections,
  failover,
]

export function nemesis(kind: string): Nemesis | undefined {
  return NEMESES.find((one) => one.kind === kind)
}
