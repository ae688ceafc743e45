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

// The pids are made up, and somebody's.
const signalled = vi.hoisted((): unknown[] => [])
vi.mock('../../../src/cli/process-group.ts', () => ({
  signalGroup: (...words: unknown[]) => signalled.push(words),
}))

it('tries again for a guard that was killed while no process could be started', async () => {
  started.pids = [101, undefined, undefined, 102]
  const guard = new Guard(null)
  guard.protect(7)
  const [first] = started.all as [EventEmitter]
  expect(() => first.emit('exit', null, 'SIGKILL')).not.toThrow()
  await vi.waitFor(() => expect(started.all).toHaveLength(4), 5000)
  const { stdin } = started.all[3] as { stdin: PassThrough }
  expect(String(stdin.read())).toBe('none\n7\n')
  // The fuse of the dead one goes with it.
  expect(signalled).toEqual([[101, 'SIGKILL']])
  guard.off()
})
