import type { VirtualEnv } from '../../testkit/virtual-env.ts'
import type { Fault } from './fault.ts'
import { describe } from './faults.ts'
import type { LogLine, Network } from './network.ts'
import type { Backend } from './stores/backend.ts'

/** What the faults are done to. */
export interface Victims {
  readonly world: VirtualEnv
  readonly backend: Backend
  readonly networks: readonly Network[]
  readonly log: LogLine
  readonly onKill: (process: number) => void
}

/** Does to a world what a list says, each thing at its time. */
export function unleash(faults: readonly Fault[], victims: Victims): void {
  for (const fault of faults) {
    const { world, log } = victims
    const begin = (): void => {
      log('nemesis', describe(fault))
      start(fault, victims)
    }
    // The rates are set before anybody looks at a clock.
    if (fault.kind === 'clock-rate' || fault.kind === 'node-clock-rate') begin()
    else world.setTimer(begin, fault.at, true)
    if (!('until' in fault)) continue
    const end = (): void => {
      log('nemesis', `${fault.kind} ends`)
      stop(fault, victims)
    }
    world.setTimer(end, fault.until, true)
  }
}

function start(fault: Fault, { backend, networks, onKill }: Victims): void {
  const network = 'process' in fault ? networks[fault.process] : undefined
  const node = 'node' in fault ? backend.nodes[fault.node] : undefined
  switch (fault.kind) {
    case 'delay':
      return network?.slow(fault)
    case 'loss':
      return network?.lose(fault)
    case 'duplicate':
      return network?.duplicate(fault)
    case 'echo':
      return network?.echo(fault)
    case 'partition':
      return network?.cut(fault.node)
    case 'pause':
      return network?.env.pause()
    case 'suspend':
      return network?.env.suspend()
    case 'stall':
      return network?.env.stall(fault.reads, fault.ms)
    case 'kill':
      network?.env.kill()
      return onKill(fault.process)
    case 'restart':
    case 'failover':
    case 'hand-over':
      if (node !== undefined) node.up = false
      return
    case 'clock-jump':
      return network?.env.clocks.setWall(fault.by)
    case 'node-clock-jump':
      return node?.clocks.setWall(fault.by)
    case 'clock-rate':
      if (network !== undefined) network.env.clocks.rate = fault.rate
      return
    case 'node-clock-rate':
      if (node !== undefined) node.clocks.rate = fault.rate
      return
    case 'evict':
      return backend.evict?.(fault.node, fault.name)
  }
}

function stop(
  fault: Extract<Fault, { readonly until: number }>,
  { world, backend, networks }: Victims,
): void {
  switch (fault.kind) {
    case 'delay':
      return networks[fault.process]?.quick()
    case 'partition':
      return networks[fault.process]?.mend(fault.node)
    case 'suspend':
      return networks[fault.process]?.env.wake()
    case 'pause':
      return networks[fault.process]?.env.resume()
    case 'restart':
    case 'failover': {
      const node = backend.nodes[fault.node]
      if (node === undefined) return
      if (fault.kind === 'restart') backend.restarted(fault.node, fault.memory, fault.at)
      else backend.failedOver?.(fault.node, fault.at - fault.behind)
      node.up = true
      for (const network of networks) network.reachable(fault.node)
      return
    }
    case 'hand-over': {
      const node = backend.nodes[fault.node]
      if (node === undefined) return
      backend.handedOver?.(fault.node)
      node.up = true
      const noticed = (): void => networks.forEach((network) => network.reachable(fault.node))
      world.setTimer(noticed, fault.stays, true)
    }
  }
}
