import { getEventListeners } from 'node:events'
import { afterEach, expect, it, vi } from 'vitest'

import { Interrupt } from '../../src/cli/interrupt.ts'

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

it('takes signals of one moment for one wish to end, and a later one for impatience', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as never)
  const interrupt = new Interrupt({ impatient: true, ending: [] })
  interrupt.came('SIGINT')
  expect(interrupt.signal.aborted).toBe(true)
  interrupt.came('SIGTERM')
  vi.advanceTimersByTime(499)
  interrupt.came('SIGTERM')
  expect(exit).not.toHaveBeenCalled()
  expect(interrupt.exitCode).toBe(130)
  vi.advanceTimersByTime(1)
  interrupt.came('SIGTERM')
  expect(exit).toHaveBeenCalledWith(130)
})

it('leaves nothing behind where somebody waits again and again for an answer or a signal', async () => {
  const interrupt = new Interrupt({ ending: [] })
  expect(await interrupt.orArrival(Promise.resolve('an answer'))).toBe('an answer')
  await expect(interrupt.orArrival(Promise.reject(new Error('a failure')))).rejects.toThrow('a failure')
  expect(getEventListeners(interrupt.signal, 'abort')).toEqual([])
  const never = interrupt.orArrival(new Promise(() => {}))
  interrupt.came('SIGINT')
  expect(await never).toBeUndefined()
  expect(await interrupt.orArrival(Promise.resolve('too late'))).toBeUndefined()
})
