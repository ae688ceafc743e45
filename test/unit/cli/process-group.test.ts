import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
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

describe.skipIf(process.platform !== 'linux')('where /proc', () => {
  const procs: string[] = []
  afterEach(() => {
    for (const proc of procs.splice(0)) rmSync(proc, { recursive: true })
  })
  function proc(self?: number): string {
    const made = mkdtempSync(join(tmpdir(), 'holdfast-proc-'))
    procs.push(made)
    if (self !== undefined) symlinkSync(String(self), join(made, 'self'))
    return made
  }

  it('is empty, or that of another namespace, the system is asked for the group', async () => {
    const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })
    const { pid = 0 } = child
    for (const none of [proc(), proc(process.pid + 1)]) expect(sessionRuns(pid, none)).toBe(true)
    child.kill('SIGKILL')
    await once(child, 'exit')
    for (const none of [proc(), proc(process.pid + 1)]) expect(sessionRuns(pid, none)).toBe(false)
  })

  it('hides processes of other users, one that may not be sent a signal runs', () => {
    const forbidden = (): never => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
    }
    vi.spyOn(process, 'kill').mockImplementation(forbidden)
    const hiding = proc(process.pid)
    expect(sessionRuns(4711, hiding)).toBe(true)
    // Where all can be seen it is a body.
    mkdirSync(join(hiding, '1'))
    writeFileSync(join(hiding, '1', 'stat'), '1 (init) S 0 1 1 ')
    expect(sessionRuns(4711, hiding)).toBe(false)
  })
})
