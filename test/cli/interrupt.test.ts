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
