import { setTimeout as sleep } from 'node:timers/promises'

import type { Nemesis } from '../nemesis.ts'
import { byServer, cutOff, during, longEnough, nothingGiven } from './common.ts'

export const serverPause: Nemesis = {
  kind: 'server-pause',
  what: 'the server stands still for longer than a lease',
  row: 'partition',
  missing: byServer,
  async strike(scene) {
    const { server, ttl } = scene.stage
    const end = scene.diary.faultBegins('server-pause', 'server', { detail: 'SIGSTOP', least: ttl })
    await server?.pause()
    const but = 'the server stands still'
    const meanwhile = (): Promise<unknown> =>
      server?.minority === true ? sleep(ttl * 1.5) : nothingGiven(scene, ttl * 1.5, but)
    await during(end, meanwhile, () => server?.resume())
  },
}

export const restart: Nemesis = {
  kind: 'restart',
  what: 'the server is killed and starts again with its data',
  row: 'storeRestart',
  missing: byServer,
  async strike(scene) {
    const { client } = await scene.lingerer('before the check')
    const end = scene.diary.faultBegins('restart', 'server', { detail: 'SIGKILL, data kept' })
    await scene.stage.server?.kill('SIGKILL')
    await scene.stage.server?.restart({ keepData: true })
    end()
    scene.goOn(client)
  },
}

export const wipe: Nemesis = {
  kind: 'wipe',
  what: 'the server is killed and starts again without its data, while the holder is cut off',
  row: 'storeRestart',
  aimedAt: 'exclusivity',
  ttl: 5000,
  missing: byServer,
  async strike(scene) {
    const { client, name } = await scene.lingerer('before the check')
    await cutOff(scene, client, async () => {
      const end = scene.diary.faultBegins('wipe', 'server', { detail: 'SIGKILL, data lost' })
      await scene.stage.server?.kill('SIGKILL')
      await scene.stage.server?.restart({ keepData: false })
      end()
      await longEnough(scene, { client, name }, { times: 2, least: 0 })
    })
    scene.goOn(client)
  },
}

export const clockJump: Nemesis = {
  kind: 'clock-jump',
  what: "the server's clock jumps ahead by more than a lease, while the holder is cut off",
  row: 'storeClockJump',
  aimedAt: 'exclusivity',
  ttl: 5000,
  missing: (stage) =>
    byServer(stage) ?? (stage.clock === undefined ? "the server's clock cannot be moved here" : undefined),
  async strike(scene) {
    const { client, name } = await scene.lingerer('before the check')
    await cutOff(scene, client, async () => {
      scene.diary.fault('clock-jump', 'server', `${(scene.expiry * 2) / 1000} s ahead`)
      scene.stage.clock?.jump(scene.expiry * 2)
      await longEnough(scene, { client, name }, { times: 2, least: 0 })
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
        const since = diary.now()
        await stage.admin?.[command]?.()
        diary.fault(about.kind, 'server', undefined, since)
        await sleep(random.below(withinMs))
      }
    },
  }
}

export const flushScripts: Nemesis = commanded(
  { kind: 'script-flush', what: 'the server forgets its scripts' },
  'flushScripts',
  { times: 5, withinMs: 150, cannot: 'it has no scripts, or the lab may not flush them' },
)

export const dropConnections: Nemesis = commanded(
  { kind: 'client-kill', what: 'the server ends all connections of its clients', row: 'partition' },
  'dropConnections',
  { times: 3, withinMs: 300, cannot: 'it has no command for that, or the lab may not give it' },
)

export const failover: Nemesis = {
  kind: 'failover',
  what: 'the server that leads is killed, and another one takes its place',
  row: 'failover',
  missing: ({ admin }) =>
    admin?.failover === undefined ? 'there is no other server to take its place' : undefined,
  async strike(scene) {
    const { client } = await scene.lingerer('before the check')
    const end = scene.diary.faultBegins('failover', 'server', { detail: 'SIGKILL of the leader' })
    await scene.stage.admin?.failover?.()
    end()
    scene.goOn(client)
  },
}
