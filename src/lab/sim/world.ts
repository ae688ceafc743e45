import { createHash } from 'node:crypto'
import { getEventListeners } from 'node:events'

import type { Capabilities } from '../../core/contract.ts'
import { Holdfast } from '../../locks/holdfast.ts'
import { Random } from '../../testkit/random.ts'
import { VirtualEnv } from '../../testkit/virtual-env.ts'
import { Diary } from './diary.ts'
import { Network } from './network.ts'
import { ProcessEnv } from './process-env.ts'
import type { Backend } from './stores/backend.ts'

export interface SimProcess {
  readonly name: string
  readonly env: ProcessEnv
  readonly network: Network
  readonly holdfast: Holdfast
  /** Of its locks, where nothing else was said. */
  readonly ttl: number
  readonly diary: Diary
  readonly shutdown: AbortController
}

export interface ProcessOptions {
  readonly ttl: number
  readonly patience: number
  readonly requestTimeout: number
  readonly fair: 'turns' | 'strict'
  readonly turn?: { readonly count?: number; readonly ms?: number }
  readonly clock?: { readonly wall: false }
  readonly closeStore?: true
}

/** One simulated world: a true time, a seed, a log of everything, and the processes in it. */
export class World {
  readonly env: VirtualEnv
  readonly random: Random
  readonly log: string[] = []
  readonly processes: SimProcess[] = []
  /** When a process stood still: nothing could have been done by it then. */
  readonly standstills: { readonly process: string; readonly from: number; readonly to: number }[] = []
  sent = 0

  constructor(seed: number) {
    this.random = new Random(seed)
    this.env = new VirtualEnv({ seed: this.random.uint32() })
  }

  now(): number {
    return this.env.mono()
  }

  readonly write = (who: string, what: string): void => {
    if (what.endsWith('sent')) this.sent++
    this.log.push(`${this.now().toFixed(3)} ${who} ${what}`)
  }

  addProcess(backend: Backend, options: ProcessOptions): SimProcess {
    const name = `p${this.processes.length}`
    const stalled = (ms: number): void => {
      this.standstills.push({ process: name, from: this.now(), to: this.now() + ms })
      this.write(name, `stalls for ${ms}`)
      this.env.stall(ms)
    }
    const env = new ProcessEnv(this.env, this.fork(), stalled)
    const network = new Network(name, env, { world: this.env, chance: this.fork(), log: this.write })
    const diary = new Diary(name, env, () => this.now(), this.write)
    const store = backend.connect(network, this.fork())
    const shutdown = new AbortController()
    const made: SimProcess = {
      name,
      env,
      network,
      ttl: options.ttl,
      diary,
      shutdown,
      // Garbage is collected when the machine likes, and a look at a forgotten lease reads a clock.
      holdfast: new Holdfast(store, { ...options, env, owner: name, leakWarnings: false }),
    }
    this.processes.push(made)
    return made
  }

  capabilities(): Capabilities {
    return (this.processes[0] as SimProcess).holdfast.store.capabilities
  }

  /** Chance of its own, so that one part of the world does not change what another one gets. */
  fork(): Random {
    return new Random(this.random.uint32())
  }

  hash(): string {
    return createHash('sha256').update(this.log.join('\n')).digest('hex')
  }
}

export function listenersOn({ signal }: AbortController): number {
  return getEventListeners(signal, 'abort').length
}
