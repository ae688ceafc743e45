import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, it, vi } from 'vitest'
import { sessionRuns, signalGroup } from '../../../src/cli/process-group.ts'

afterEach(() => vi.restoreAllMocks())

it.skipIf(process.platform !== 'linux')('knows that processes of another user run', async () => {
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })
  const { pid = 0 } = child
  expect([signalGroup(pid, 0), sessionRuns(pid)]).toEqual(['told', true])
  const forbidden = vi.spyOn(process, 'kill').mockImplementation(() => {
    throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
  })
  expect([signalGroup(pid, 'SIGTERM'), sessionRuns(pid)]).toEqual(['not-ours', true])
  forbidden.mockRestore()
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect([signalGroup(pid, 0), sessionRuns(pid)]).toEqual(['gone', false])
})

it('never takes everybody, or itself, for a group', () => {
  const kill = vi.spyOn(process, 'kill').mockImplementation(() => true)
  for (const group of [1, 0, -1, Number.NaN]) expect(signalGroup(group, 'SIGKILL')).toBe('gone')
  expect(kill).not.toHaveBeenCalled()
})
