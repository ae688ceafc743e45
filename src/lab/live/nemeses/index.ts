import type { Nemesis } from '../nemesis.ts'
import { block, kill, none, pause } from './clients.ts'
import { cut, delay, partition, refuse, reset } from './network.ts'
import { clockJump, dropConnections, failover, flushScripts, restart, serverPause, wipe } from './server.ts'

/** Every way there is, the gentle ones first. */
export const NEMESES: readonly Nemesis[] = [
  none,
  kill,
  pause,
  block,
  reset,
  cut,
  partition,
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
