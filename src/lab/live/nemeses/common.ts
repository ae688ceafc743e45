import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import type { EndFault } from '../diary.ts'
import type { LiveClient } from '../client.ts'
import { Missed } from '../scene.ts'
import type { Scene, Stage } from '../scene.ts'
import type { ServerHandle } from '../servers.ts'
import { endpointsOf } from '../url.ts'
import type { Way } from '../way.ts'

export const anywhere = (): undefined => undefined

export const byNetwork = ({ url }: Stage): string | undefined =>
  endpointsOf(url) === undefined ? 'its connections cannot be led through a proxy' : undefined

export const byServer = ({ server }: Stage): string | undefined =>
  server === undefined ? 'the lab did not start this server' : undefined

/** Nobody else gets anywhere near this in a run that is as it should be. */
const SLACK_MS = 5000
/** Timers may be early by a fraction. */
const CLOCK_MS = 5
const CONNECT_MS = 1000
const ENDS_MS = 1000

/** Keeps a fault up until others were given the lock of its victim so many times, and until it has lasted long enough. */
export async function longEnough(
  scene: Scene,
  victim: { readonly client: LiveClient; readonly name: string },
  { times, least }: { readonly times: number; readonly least: number },
): Promise<void> {
  await Promise.all([
    scene.othersGet(victim, times, scene.expiry + least + SLACK_MS),
    sleep(least + CLOCK_MS),
  ])
}

/** Something that lasts, and is taken back whatever happens meanwhile. */
export async function during(end: EndFault, act: () => Promise<unknown>, back: () => unknown): Promise<void> {
  try {
    await act()
  } finally {
    await back()
    end()
  }
}

/** Long enough for what was under way before. */
const UNDER_WAY_MS = 150

/** Waits while nobody can be given anything. That somebody was shows that the fault was not there. */
export async function nothingGiven(scene: Scene, ms: number, but: string): Promise<void> {
  const count = (): number => scene.clients.reduce((sum, { grants }) => sum + grants, 0)
  await sleep(UNDER_WAY_MS)
  const before = count()
  await sleep(Math.max(0, ms - UNDER_WAY_MS))
  if (count() > before) throw new Missed(`clients were given ${count() - before} locks although ${but}`)
}

/** Whoever is killed does not take connections. That it does shows that the fault was not there. */
export async function nobodyListens({ host, port }: ServerHandle): Promise<void> {
  const answers = await new Promise<boolean>((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_MS })
    const settle = (answer: boolean): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => settle(true))
    socket.once('timeout', () => settle(false)).once('error', () => settle(false))
  })
  if (answers) throw new Missed('the server takes connections although it was killed')
}

/** Whoever has no connection on its way has none that could be hurt: it reaches the store by another. */
export function connected(scene: Scene, client: LiveClient): void {
  if (client.way?.connections !== 0) return
  scene.goOn(client)
  throw new Missed(`${client.label} had no connection that could be hurt`)
}

/** Whether so many of its connections have ended. Those that stay show that the fault was not there. */
export async function ended(way: Way, count: number): Promise<boolean> {
  const end = performance.now() + ENDS_MS
  while (way.ended < count && performance.now() < end) await sleep(5)
  return way.ended >= count
}

/** Cuts a client off on both ways, without either side being told, and back again. */
export async function cutOff(
  scene: Scene,
  client: LiveClient,
  meanwhile: () => Promise<unknown>,
  least: number = 0,
): Promise<void> {
  connected(scene, client)
  const end = scene.diary.faultBegins('partition', client.label, { detail: 'nothing gets through', least })
  client.way?.set('requests', { blackhole: true })
  client.way?.set('replies', { blackhole: true })
  await during(end, meanwhile, () => {
    client.way?.heal()
    // Bytes that were swallowed are missing for good: the connections that lost them are of no use.
    client.way?.reset()
  })
}
