import type { ClaimRef, Unknown } from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import { nextTick } from '../../transport/next-tick.ts'
import type { Command } from './command.ts'
import { failed, isCrossSlot, isDriversTimeout, isForbiddenKey, isNoScript, isReadOnly } from './failure.ts'
import { RecentKeys } from './keys.ts'
import type { Driver } from './client/driver.ts'
import { ConfirmedScripts } from './replicas.ts'
import type { ReplicaWish } from './replicas.ts'
import { isNone, unexpected } from './replies.ts'
import type { Requests } from './requests.ts'
import { Resent } from './resent.ts'
import { LocalWrites, Role } from './role.ts'
import { runScript } from './run-script.ts'
import { scripts } from './scripts.gen.ts'
import type { Script } from './scripts.gen.ts'
import { Silence } from './silence.ts'
import { DAY_MS } from './wire.ts'

// Taken once: a user's fake timers must not reach locks.
const { setImmediate } = globalThis

/** Few enough for the server to begin with the first lot while the next one is put together. */
const MOST_AT_ONCE = 32
/** Where replicas have to confirm, each lot waits for the one before it for as long as the way to them takes. */
const MOST_CONFIRMED_AT_ONCE = 250

type Lot = readonly Command<unknown>[]
type Asked = Pick<Command<unknown>, 'name' | 'id' | 'kind' | 'terms' | 'ttl'>

export interface CommandsOptions {
  readonly prefix: string
  /** The key that proves that the server never lost its counters; see durable.ts. */
  readonly durableMark?: string | undefined
  readonly replicas?: ReplicaWish | undefined
}

/**
 * Commands on claims, on their way to the server. While one is under way, those that come up in the same moment wait
 * for each other and travel together: a command of the driver's costs several times what one more in a script does.
 * A single task never waits, for then nothing is under way.
 */
export class Commands {
  private readonly requests: Requests
  private readonly driver: Driver
  private readonly keys: RecentKeys
  private readonly mode: string
  private readonly mark: string | undefined
  private readonly confirmed: ConfirmedScripts | null
  private readonly silence: Silence
  private readonly resent: Resent
  readonly role: Role
  /** The server is one for a Cluster, whatever the client is for: a script takes the keys of one slot only. */
  oneSlot: boolean
  private waiting: Command<unknown>[] = []
  /** How many of those have not been given up meanwhile. */
  private wanted = 0
  private underWay = 0
  private scheduled = false
  private connection = 0
  private readonly stopCounting: () => void
  private stopListening: (() => void) | null = null
  private stopUntilSent: (() => void) | null = null

  constructor(requests: Requests, { prefix, durableMark, replicas }: CommandsOptions) {
    this.requests = requests
    this.driver = requests.driver
    this.keys = new RecentKeys(prefix)
    this.mark = durableMark
    this.mode = durableMark !== undefined ? 'd' : this.driver.cluster ? 'c' : ''
    this.silence = new Silence(this.driver)
    this.role = new Role(this.driver)
    this.resent = new Resent((late) => this.withdrawLate(late))
    this.oneSlot = this.mode !== ''
    this.confirmed = replicas === undefined ? null : new ConfirmedScripts(this.driver, replicas)
    this.stopCounting = this.driver.onConnectionChange(() => this.connection++)
  }

  close(): void {
    this.role.close()
    this.stopCounting()
    this.confirmed?.close()
    this.stopUntilSent?.()
  }

  send<T>(command: Command<T>, timeout: number): Promise<T | Unknown> {
    return new Promise((resolve) => {
      command.onSilence = this.noAnswer
      this.resent.asked(command as Command<unknown>)
      command.begin(this.requests, timeout, resolve)
      const ready = this.driver.ready()
      if (ready && (this.mode !== '' || (this.underWay === 0 && this.waiting.length === 0))) {
        return this.transmit([command as Command<unknown>])
      }
      const ended = ready ? undefined : this.requests.ended()
      if (ended !== undefined) return void setImmediate(() => command.fail(ended))
      this.waiting.push(command as Command<unknown>)
      this.wanted++
      if (!ready) this.waitUntilReady()
      else if (!this.scheduled) {
        this.scheduled = true
        nextTick(() => this.flush())
      }
    })
  }

  private waitUntilReady(): void {
    if (this.stopListening !== null) return
    const stopHolding = this.requests.holdProcess()
    const stop = this.driver.onReady(() => {
      const refusal = this.requests.refusal()
      if (refusal === undefined) return this.flush()
      this.stopWaiting()
      this.wanted = 0
      for (const command of this.waiting.splice(0)) command.fail(refusal)
    })
    this.stopListening = () => {
      stop()
      stopHolding()
    }
  }

  private stopWaiting(): void {
    if (this.stopListening === null) return
    this.stopListening()
    this.stopListening = null
  }

  private flush(): void {
    this.scheduled = false
    if (!this.driver.ready()) return this.waitUntilReady()
    this.stopWaiting()
    const commands = this.waiting.filter(({ settled }) => !settled)
    this.waiting = []
    this.wanted = 0
    // Where a script takes keys of one slot only, the driver sends the commands of a moment together.
    const size = this.oneSlot ? 1 : this.confirmed === null ? MOST_AT_ONCE : MOST_CONFIRMED_AT_ONCE
    for (let at = 0; at < commands.length; at += size) this.transmit(commands.slice(at, at + size))
  }

  private transmit(lot: Lot): void {
    this.underWay++
    if (this.role.due) this.role.look()
    for (const command of lot) {
      command.sent = true
      command.connection = this.connection
    }
    if (this.confirmed !== null) return this.transmitConfirmed(lot, this.confirmed)
    const [first] = lot
    if (first?.uncontended === true && lot.length === 1 && this.mark === undefined)
      return this.delete(first, lot)
    this.transmitScript(lot)
  }

  /** Compares and deletes without a script. What it does not find may have become a matter for one: others wait. */
  private delete(release: Command<unknown>, lot: Lot): void {
    let reply: Promise<unknown>
    try {
      reply = this.driver.hdel(this.keys.of(release.name)[0], release.id)
    } catch (error) {
      return this.broke(lot, error)
    }
    reply.then(
      (deleted) => {
        // Nothing is sent when its time is up.
        if (release.settled || !isNone(deleted)) this.answered(lot, deleted)
        else this.transmitScript(lot)
      },
      (error: unknown) => this.broke(lot, error),
    )
  }

  private transmitScript(lot: Lot): void {
    const script = scriptFor(lot)
    this.follow('evalsha', lot, script.sha1, (error) => {
      // A server that was restarted, flushed or promoted may not know the script. Nothing is sent when its time is up.
      const open = isNoScript(error) ? lot.filter(({ settled }) => !settled) : []
      if (open.length === 0) return this.broke(lot, error)
      this.resent.over(lot, false)
      this.follow('eval', open, scriptFor(open).lua, (second) => this.broke(open, second))
    })
  }

  private follow(how: 'evalsha' | 'eval', lot: Lot, script: string, onError: (error: unknown) => void): void {
    let reply: Promise<unknown>
    try {
      reply = this.driver[how](this.argumentsOf(lot, script))
    } catch (error) {
      return this.broke(lot, error)
    }
    reply.then((answer) => this.answered(lot, answer), onError)
  }

  /**
   * What too few replicas know of is in doubt. It is not undone here: whoever asked asks again, which keeps the place and is
   * confirmed in its turn, or withdraws it. A release from here could overtake the second question, and take away what that
   * was granted.
   */
  private transmitConfirmed(lot: Lot, confirmed: ConfirmedScripts): void {
    const script = scriptFor(lot)
    confirmed.run(script, this.argumentsOf(lot, script.sha1).slice(1)).then(
      ({ reply, unconfirmed }) => {
        if (unconfirmed === undefined) return this.answered(lot, reply)
        this.underWay--
        this.resent.over(lot, true)
        for (const command of lot) command.fail(unknown(unconfirmed))
      },
      (error: unknown) => this.broke(lot, error),
    )
  }

  /** With a new connection the driver first sends what it kept of the last one. */
  private untilSent(): void {
    this.stopUntilSent ??= this.driver.onReady(() => {
      if (!this.driver.ready() || this.resent.sentAll()) return
      this.stopUntilSent?.()
      this.stopUntilSent = null
    })
  }

  /** Runs a script that is about no claim, and has it confirmed like those that are. */
  async run(script: Script, args: readonly string[]): Promise<unknown> {
    const { confirmed } = this
    if (confirmed === null) return runScript(this.driver, script, args)
    const first = await confirmed.run(script, args)
    // The first question to a node of a Cluster may be what makes the connection, and an answer from across that counts as a no.
    const { reply, unconfirmed } = first.unconfirmed === undefined ? first : await confirmed.run(script, args)
    if (unconfirmed !== undefined) throw unconfirmed
    return reply
  }

  private withdrawLate({ name, id }: ClaimRef): void {
    const [, ...args] = this.argumentsOf([{ name, id, kind: 'w', terms: '', ttl: 0 }], '')
    runScript(this.driver, scripts.one, args).catch(() => {})
  }

  private argumentsOf(lot: readonly Asked[], script: string): string[] {
    const [first] = lot
    if (first === undefined || lot.length > 1) {
      const args = [script, String(3 * lot.length)]
      for (const { name } of lot) args.push(...this.keys.of(name))
      for (const { id, kind, terms, ttl } of lot) {
        if (terms === '') args.push(id, kind)
        else if (ttl === 0) args.push(id, kind, terms)
        else args.push(id, kind, terms, this.life(ttl))
      }
      return args
    }
    const { name, id, kind, terms, ttl } = first
    const [header, index, records] = this.keys.of(name)
    if (this.mode === '') {
      return terms === ''
        ? [script, '3', header, index, records, id, kind]
        : [script, '3', header, index, records, id, kind, terms, this.life(ttl)]
    }
    const args = [id, kind, terms, this.life(ttl), this.mode]
    return this.mark === undefined
      ? [script, '3', header, index, records, ...args]
      : [script, '4', header, index, records, this.mark, ...args]
  }

  /** How long the header of a name is to live that is held for so long; see scripts/lib/header.lua. */
  private life(ttl: number): string {
    return ttl === 0 ? '' : String(ttl + DAY_MS)
  }

  /** A command about this name was not answered in its time. */
  readonly noAnswer = (name: string, waited: number, command?: Command<unknown>): void => {
    if (command?.sent === true && !this.requests.closed) this.resent.notAnswered(command)
    // What ends because the store is closed has not waited in vain.
    if (!this.requests.closed) this.silence.noAnswer(this.keys.of(name)[0], waited)
    if (command === undefined || command.sent) return
    this.wanted--
    // Not each time: of twenty thousand that wait for a server that is away, each would look at all the others.
    if (this.waiting.length > 2 * this.wanted) this.waiting = this.waiting.filter(({ settled }) => !settled)
    if (this.wanted === 0) this.stopWaiting()
  }

  /** The server of this name has answered. */
  heardFrom(name: string): void {
    if (this.silence.suspects) this.silence.answer(this.keys.of(name)[0])
  }

  private answered(lot: Lot, reply: unknown): void {
    if (this.role.sure) return this.believed(lot, reply)
    this.role.tell((problem) => {
      if (problem === undefined) return this.believed(lot, reply)
      this.underWay--
      this.resent.over(lot, true)
      this.disbelieved(lot[0]?.name ?? '', problem)
      for (const command of lot) command.fail(problem)
    })
  }

  /** If whoever answered about this name is not whom others ask, another one is looked for. */
  disbelieved(name: string, { cause }: Unknown): void {
    if (cause instanceof LocalWrites) this.silence.refused(this.keys.of(name)[0])
  }

  private believed(lot: Lot, reply: unknown): void {
    this.underWay--
    this.heardFrom(lot[0]?.name ?? '')
    this.resent.over(lot, true)
    if (lot.length === 1) return lot[0]?.answered(reply, this.repeated(lot[0]))
    if (!Array.isArray(reply) || reply.length !== lot.length)
      return lot.forEach((command) => command.fail(failed(unexpected())))
    lot.forEach((command, i) => command.answered(reply[i], this.repeated(command)))
  }

  /** A driver may send again what was not answered when its connection was lost. Where there is none, it may always do so. */
  private repeated({ connection, uncontended }: Command<unknown>): boolean {
    return connection !== this.connection || (uncontended && this.driver.connectionless === true)
  }

  private broke(lot: Lot, error: unknown): void {
    this.underWay--
    if (!isDriversTimeout(error)) this.resent.over(lot, false)
    else if (this.resent.timedOut(lot)) this.untilSent()
    // What is refused for the keys of several names may be granted for some of them.
    if (lot.length > 1 && (isCrossSlot(error) || isForbiddenKey(error))) {
      this.oneSlot ||= isCrossSlot(error)
      for (const command of lot) if (!command.settled) this.transmit([command])
      return
    }
    if (isReadOnly(error)) this.silence.refused(this.keys.of(lot[0]?.name ?? '')[0])
    for (const command of lot) command.fail(failed(error))
  }
}

function scriptFor({ length }: Lot): Script {
  return length === 1 ? scripts.one : scripts.many
}
