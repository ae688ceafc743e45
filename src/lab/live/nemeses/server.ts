import { setTimeout as sleep } from 'node:timers/promises'

import type { Nemesis } from '../nemesis.ts'
import { Missed } from '../scene.ts'
import type { Scene } from '../scene.ts'
import { signsSince } from '../signs.ts'
import { byServer, cutOff, during, longEnough, nobodyListens, nothingGiven } from './common.ts'

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
    const again = (): Promise<void> => killed(scene, { keepData: true })
    await during(end, again, () => scene.goOn(client))
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
    const gone = cutOff(scene, client, async () => {
      const end = scene.diary.faultBegins('wipe', 'server', { detail: 'SIGKILL, data lost' })
      const again = (): Promise<void> => killed(scene, { keepData: false })
      await during(end, again, () => undefined)
      await longEnough(scene, { client, name }, { times: 2, least: 0 })
    })
    await gone.finally(() => scene.goOn(client))
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

async function killed({ stage: { server } }: Scene, how: { readonly keepData: boolean }): Promise<void> {
  if (server === undefined) return
  await server.kill('SIGKILL')
  await nobodyListens(server)
  await server.restart(how)
}

/** By then everybody has heard of the end of a connection. */
const HEARD_MS = 100

/** Something that the lab has the server do, again and again while clients are at work. */
function commanded(
  about: Pick<Nemesis, 'kind' | 'what' | 'row'>,
  command: 'flushScripts' | 'dropConnections',
  { times, withinMs, cannot }: { readonly times: number; readonly withinMs: number; readonly cannot: string },
): Nemesis {
  return {
    ...about,
    missing: ({ admin }) => (admin?.[command] === undefined ? cannot : undefined),
    async strike(scene) {
      const { stage, diary, random } = scene
      const ended = (): number => scene.clients.reduce((sum, { way }) => sum + (way?.ended ?? 0), 0)
      const before = ended()
      for (let time = 0; time < times; time += 1) {
        const since = diary.now()
        await stage.admin?.[command]?.()
        diary.fault(about.kind, 'server', undefined, since)
        await sleep(random.below(withinMs))
      }
      if (command !== 'dropConnections' || scene.clients.every(({ way }) => way === undefined)) return
      await sleep(HEARD_MS)
      if (ended() === before)
        throw new Missed('no connection ended although the server was to end all of them')
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
    const seen = signsSince(scene)
    const end = scene.diary.faultBegins('failover', 'server', { detail: 'SIGKILL of the leader' })
    const failed = async (): Promise<void> => scene.stage.admin?.failover?.()
    await during(end, failed, () => scene.goOn(client))
    await sleep(HEARD_MS)
    if (!seen()) throw new Missed('nobody noticed that another server leads: all questions were answered')
  },
}
