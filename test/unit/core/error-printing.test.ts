import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'

import { describe, expect, it } from 'vitest'

import { bare } from '../../../src/core/error-printing.ts'
import { noAnswer } from '../../../src/runtime/lane-errors.ts'
import {
  ClosedError,
  HoldfastError,
  LockAbortedError,
  LockLostError,
  StoreUnavailableError,
} from '../../../src/core/errors.ts'

/** As drivers make them: with the command that failed on them, and in it what nobody may read. */
class DriverError extends Error {
  readonly command: unknown = { args: ['secret'] }
  readonly code = 'ECONNRESET'
}

const nested = (depth: number, made: (cause: unknown) => Error): Error => {
  let error = made(undefined)
  for (let at = 1; at < depth; at++) error = made(error)
  return error
}

describe('a driver’s error, bared', () => {
  it('is itself where nothing hangs on it', () => {
    const plain = Object.assign(new TypeError('x'), {
      code: 'E',
      errno: 1,
      syscall: 's',
      address: 'a',
      port: 1,
    })
    const deep = new Error('outer', { cause: plain })
    const ours = Object.assign(new ClosedError('x'), { more: 1 })
    for (const same of [plain, deep, ours, 'text', null, { secret: 1 }]) expect(bare(same)).toBe(same)
  })

  it('is a copy of the same class without the rest', () => {
    const error = new DriverError('failed')
    const copy = bare(error) as DriverError
    expect(copy).not.toBe(error)
    expect(copy).toBeInstanceOf(DriverError)
    expect([copy.message, copy.code, copy.stack]).toEqual(['failed', 'ECONNRESET', error.stack])
    expect(copy.command).toBeUndefined()
    expect(inspect(copy)).not.toContain('secret')
    expect('cause' in copy).toBe(false)
  })

  it('is bare all the way down, as far as anybody looks', () => {
    const outer = new Error('outer', { cause: new DriverError('inner') })
    const copy = bare(outer) as Error
    expect(copy).not.toBe(outer)
    expect((copy.cause as Error).message).toBe('inner')
    expect(inspect(copy)).not.toContain('secret')
    const deep = nested(8, (cause) => new Error('e', { cause: cause ?? new DriverError('x') }))
    expect(inspect(bare(deep), { depth: 20 })).not.toContain('secret')
  })
})

describe('an error as JSON', () => {
  it('shows causes in words, with their codes, and ours whole', () => {
    const at = (cause: unknown): unknown => new StoreUnavailableError('x', { cause }).toJSON()['cause']
    expect(at(Object.assign(new TypeError('no'), { code: 'E', secret: 1 }))).toEqual({
      name: 'TypeError',
      message: 'no',
      code: 'E',
    })
    expect(at(Object.assign(new Error('no'), { code: 7 }))).toEqual({ name: 'Error', message: 'no', code: 7 })
    expect(at(Object.assign(new Error('no'), { code: {} }))).toEqual({ name: 'Error', message: 'no' })
    expect(at(new ClosedError('shut', { lock: 'y' }))).toMatchObject({
      code: 'CLOSED',
      lock: 'y',
      name: 'ClosedError',
    })
    expect(at({ secret: 1 })).toBe('[object Object]')
    expect(at(() => 1)).toBe('[object Function]')
    expect(at(12n)).toBe('12')
    expect(at(null)).toBe('[object Null]')
    expect('cause' in new StoreUnavailableError('x').toJSON()).toBe(false)
  })

  it('ends somewhere, also if its causes do not', () => {
    const circle = new Error('round')
    circle.cause = circle
    const text = JSON.stringify(new StoreUnavailableError('x', { cause: circle }))
    expect(text.match(/round/g)?.length).toBe(9)
    expect(inspect(new StoreUnavailableError('x', { cause: circle })).match(/Error: round/g)?.length).toBe(9)
  })

  it('ends where it began, if its cause names it as a cause', () => {
    const reason = new Error('shutdown')
    const aborted = new LockAbortedError('x', { lock: 'a', cause: reason })
    reason.cause = aborted
    const brief = { name: 'LockAbortedError', message: 'x', code: 'LOCK_ABORTED' }
    const whole = { ...brief, lock: 'a', cause: { name: 'Error', message: 'shutdown', cause: brief } }
    expect([aborted.toJSON(), aborted.toJSON()]).toEqual([whole, whole])
    expect(HoldfastError.from(aborted.toJSON()).cause).toMatchObject({ message: 'shutdown' })
  })

  it('shows what the function did under a lock that was lost, without its value', () => {
    const lost = (outcome: object) =>
      new LockLostError('x', { token: 1n, outcome: outcome as never }).toJSON()
    expect(lost({ status: 'fulfilled', value: { secret: 1n } })['outcome']).toEqual({ status: 'fulfilled' })
    expect(lost({ status: 'rejected', reason: new Error('why') })).toMatchObject({
      token: '1',
      outcome: { status: 'rejected', reason: { name: 'Error', message: 'why' } },
    })
    expect('outcome' in new LockLostError('x', { token: 1n }).toJSON()).toBe(false)
  })
})

describe('an error as text', () => {
  it('has its stack, its facts and its causes', () => {
    const cause = new Error('inner', { cause: new ClosedError('ours', { lock: 'y' }) })
    const text = inspect(new LockLostError('outer', { token: 5n, lock: 'x', cause }))
    expect(text).toMatch(/^LockLostError: outer\n {4}at /)
    expect(text).toContain("lock: 'x'")
    expect(text).toContain('token: 5n')
    expect(text).toMatch(/\[cause\]: Error: inner\n[^]*\[cause\]: ClosedError: ours[^]*lock: 'y'/)
    expect(inspect(new ClosedError('x'))).not.toContain('[cause]')
    expect(inspect({ error: new ClosedError('x') }, { depth: 1 })).toContain('ClosedError: x')
    for (const cause of ['in words', 17, null])
      expect(inspect(new ClosedError('x', { cause }))).toContain(
        `[cause]: ${cause === null ? '[object Null]' : cause}`,
      )
    expect(inspect({ error: new ClosedError('x') }, { depth: 0 })).toBe('{ error: [HoldfastError] }')
    expect(inspect({ deep: { deeper: { error: new ClosedError('x') } } }, { depth: 2 })).toContain(
      '[HoldfastError]',
    )
  })

  it('has of a driver’s error nothing but its stack', () => {
    const text = inspect(new StoreUnavailableError('x', { cause: new DriverError('inner') }))
    expect(text).toContain('inner')
    expect(text).not.toContain('secret')
    const bareStack = Object.assign(new Error('stackless'), { stack: undefined })
    expect(inspect(new StoreUnavailableError('x', { cause: bareStack }))).toContain(
      '[cause]: Error: stackless',
    )
  })
})

describe('the way back', () => {
  it('makes tokens of digits only, and keeps what else there was', () => {
    const back = (more: object): LockLostError =>
      HoldfastError.from({ code: 'LOCK_LOST', message: 'm', ...more }) as LockLostError
    expect(back({ token: '12', lock: 'x' })).toMatchObject({ token: 12n, lock: 'x' })
    expect(back({ token: 'x1' }).token).toBeUndefined()
    expect(back({ token: 7 }).token).toBeUndefined()
    expect(back({}).cause).toBeUndefined()
  })

  it('makes errors of causes that were some, and leaves the others', () => {
    const cause = (given: unknown): unknown =>
      HoldfastError.from({ code: 'CLOSED', message: 'm', cause: given }).cause
    expect(cause('text')).toBe('text')
    expect(cause(null)).toBeNull()
    expect(cause({ other: 1 })).toEqual({ other: 1 })
    const made = cause({
      name: 'TypeError',
      message: 'no',
      code: 'E',
      cause: { name: 'Error', message: 'deep' },
    })
    expect(made).toBeInstanceOf(Error)
    expect(made).toMatchObject({ name: 'TypeError', message: 'no', code: 'E', cause: { message: 'deep' } })
    const short = cause({ name: 'Error', message: 'no' }) as Error
    expect(['code' in short, 'cause' in short]).toEqual([false, false])
    expect(cause({ code: 'CLOSED', message: 'ours' })).toBeInstanceOf(ClosedError)
    expect(cause({ code: 'ENOENT', message: 'theirs', name: 'Error' })).toMatchObject({ code: 'ENOENT' })
    for (const wrong of [
      { code: 'CLOSED' },
      { message: 'm' },
      { code: 'CLOSED', message: 7 },
      { code: 7, message: 'm' },
      { code: 'ANY', message: 'm' },
      undefined,
    ])
      expect(() => HoldfastError.from(wrong)).toThrow(/must be what toJSON/)
  })
})

describe('an error of another realm, as Node’s own are in Jest', () => {
  const refused: unknown = runInNewContext(
    "Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', command: 'secret' })",
  )

  it('is no Error of ours', () => {
    expect(refused instanceof Error).toBe(false)
  })

  it('says in words what it says, and nothing else', () => {
    const error = new StoreUnavailableError('x', { cause: refused })
    expect(error.toJSON()['cause']).toEqual({
      name: 'Error',
      message: 'connect ECONNREFUSED',
      code: 'ECONNREFUSED',
    })
    expect(inspect(error)).toContain('[cause]: Error: connect ECONNREFUSED')
    expect(inspect(error.cause)).not.toContain('secret')
    expect(noAnswer('far', { kind: 'unknown', cause: refused })).toContain('asked: connect ECONNREFUSED.')
  })
})
