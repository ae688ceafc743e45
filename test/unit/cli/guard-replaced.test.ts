import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, it, vi } from 'vitest'
import { Guard } from '../../../src/cli/guard.ts'

const started = vi.hoisted((): { pids: (number | undefined)[]; all: unknown[] } => ({ pids: [], all: [] }))

vi.mock('node:child_process', () => ({
  spawn: () => {
    const one = Object.assign(new EventEmitter(), {
      pid: started.pids.shift(),
      stdin: new PassThrough(),
      unref: () => undefined,
    })
    started.all.push(one)
    return one
  },
}))

it('tries again for a guard that was killed while no process could be started', async () => {
  started.pids = [1, undefined, undefined, 2]
  const guard = new Guard(null)
  guard.protect(7)
  const [first] = started.all as [EventEmitter]
  expect(() => first.emit('exit', null, 'SIGKILL')).not.toThrow()
  await vi.waitFor(() => expect(started.all).toHaveLength(4), 5000)
  const { stdin } = started.all[3] as { stdin: PassThrough }
  expect(String(stdin.read())).toBe('none\n7\n')
  guard.off()
})
