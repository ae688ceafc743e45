import type { Store } from '../core/contract.ts'
import { HoldfastError } from '../core/errors.ts'
import { Holdfast } from '../locks/holdfast.ts'
import type { Lease } from '../runtime/lease.ts'
import { Recorder } from './history.ts'
import type { Story } from './history.ts'
import type { TakerCommand, TakerMessage, TakerRequest, TakerState } from './taker-protocol.ts'

/** The program of a taker: does what its parent says over the IPC channel, and ends with it. */

interface Taken {
  readonly lease: Lease
  readonly story: Story
  readonly checks: NodeJS.Timeout
}

const CHECK_EVERY_MS = 20

const send = (message: TakerMessage): void => void process.send?.(message)

class Taker {
  private readonly holdfast: Holdfast
  private readonly recorder: Recorder
  private taken: Taken | undefined

  constructor(holdfast: Holdfast, label: string) {
    this.holdfast = holdfast
    this.recorder = new Recorder(label, { onEvent: (event) => send({ event }) })
  }

  async run(command: Exclude<TakerCommand, { do: 'open' }>): Promise<unknown> {
    switch (command.do) {
      case 'acquire':
        return this.acquire(command)
      case 'release':
        return this.release()
      case 'state':
        return this.state()
      case 'block':
        return this.block(command.ms)
      case 'close':
        return this.holdfast.close({ drain: 0 })
    }
  }

  private async acquire({ name, options }: Extract<TakerCommand, { do: 'acquire' }>): Promise<bigint> {
    if (this.taken !== undefined) throw new Error('a taker takes one lock at a time')
    const { renew, ...rest } = options
    const story = this.recorder.acquire(name)
    const lock = this.holdfast.mutex(name, renew === undefined ? {} : { renew })
    let lease: Lease
    try {
      lease = await lock.acquire(rest)
    } catch (error) {
      story.failed()
      throw error
    }
    story.acquired(lease)
    lease.signal.addEventListener('abort', () => story.lost(), { once: true })
    const checks = setInterval(() => lease.held && story.check(lease), CHECK_EVERY_MS)
    this.taken = { lease, story, checks }
    return lease.token
  }

  private async release(): Promise<string> {
    if (this.taken === undefined) throw new Error('nothing is taken')
    const { lease, story, checks } = this.taken
    this.taken = undefined
    clearInterval(checks)
    story.releasing()
    const outcome = await lease.release()
    story.released(outcome)
    return outcome
  }

  private state(): TakerState {
    if (this.taken === undefined) return { held: false, aborted: false, remaining: 0 }
    const { lease } = this.taken
    return { held: lease.held, remaining: lease.remaining(), aborted: lease.signal.aborted }
  }

  private block(ms: number): TakerState {
    const until = performance.now() + ms
    while (performance.now() < until);
    return this.state()
  }
}

let taker: Taker | undefined

async function obey(command: TakerCommand): Promise<unknown> {
  if (command.do !== 'open') {
    if (taker === undefined) throw new Error('the taker is not open')
    return taker.run(command)
  }
  const { module, options, label } = command
  const exports = (await import(module.url)) as Record<string, (args: unknown) => Store | Promise<Store>>
  const make = exports[module.export]
  if (make === undefined) throw new Error(`${module.url} has no export ${module.export}`)
  taker = new Taker(new Holdfast(await make(module.args), options), label)
  return undefined
}

process.on('message', ({ id, command }: TakerRequest) => {
  obey(command).then(
    (result) => send({ id, result }),
    (error: unknown) => {
      const message = error instanceof Error ? error.message : String(error)
      send({ id, error: error instanceof HoldfastError ? { message, code: error.code } : { message } })
    },
  )
})
process.on('disconnect', () => process.exit())
