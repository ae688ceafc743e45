import { spawn } from 'node:child_process'

import { describe, expect, it } from 'vitest'

const root = new URL('../../dist/index.js', import.meta.url).href
const memory = new URL('../../dist/stores/memory/index.js', import.meta.url).href

interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: string
  readonly ms: number
}

/** Runs a program against the built package; `holdfast` is there. */
function run(body: string): Promise<Ending> {
  const program = `
    import { Holdfast } from '${root}'
    import { memoryStore } from '${memory}'
    const holdfast = new Holdfast(memoryStore(), { ttl: 60_000 })
    ${body}`
  const started = performance.now()
  const child = spawn(process.execPath, [
    '--unhandled-rejections=strict',
    '--input-type=module',
    '-e',
    program,
  ])
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return new Promise((resolve) => {
    child.on('close', (code, signal) =>
      resolve({ code, signal, output: output.trim(), ms: performance.now() - started }),
    )
  })
}

/** Far below the ttl and the wait of these programs, far above what starting Node takes. */
const SOON_MS = 20_000

describe('a process', () => {
  it('ends when its work is done, although it still holds a lease', async () => {
    const { code, output, ms } = await run(`
      const lease = await holdfast.mutex('x').acquire()
      console.log(lease.held)`)
    expect({ code, output }).toEqual({ code: 0, output: 'true' })
    expect(ms).toBeLessThan(SOON_MS)
  })

  it('ends after a thousand runs without anything to be closed', async () => {
    const { code, output, ms } = await run(`
      for (let n = 0; n < 1000; n++) await holdfast.mutex('x' + (n % 7)).run((lease) => lease.signal)
      console.log(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length)`)
    expect({ code, output }).toEqual({ code: 0, output: '0' })
    expect(ms).toBeLessThan(SOON_MS)
  })

  it('does not end while somebody waits for a lock: the wait ends with its error', async () => {
    const { code, output } = await run(`
      await holdfast.mutex('x').acquire()
      await holdfast.mutex('x').acquire({ wait: 300 }).catch((error) => console.log(error.code))`)
    expect({ code, output }).toEqual({ code: 0, output: 'LOCK_TIMEOUT' })
  })

  it('does not end while somebody waits for ever', async () => {
    const { code, output } = await run(`
      const lease = await holdfast.mutex('x').acquire()
      setTimeout(() => console.log('still here') || lease.release(), 500).unref()
      await holdfast.mutex('x').acquire({ wait: Infinity })
      console.log('acquired')`)
    expect({ code, output }).toEqual({ code: 0, output: 'still here\nacquired' })
  })

  it('ends soon after close, with waiters told and nothing unhandled', async () => {
    const { code, output, ms } = await run(`
      await holdfast.mutex('x').acquire()
      const waits = Array.from({ length: 50 }, () => holdfast.mutex('x').acquire().catch((error) => error.code))
      await holdfast.close({ drain: 0 })
      console.log(new Set(await Promise.all(waits)))`)
    expect({ code, output }).toEqual({ code: 0, output: "Set(1) { 'CLOSED' }" })
    expect(ms).toBeLessThan(SOON_MS)
  })
})

describe('closeOn', () => {
  const signalled = (body: string): Promise<Ending> =>
    run(`
      const section = (ms) => holdfast.mutex('x').run((lease) => new Promise((resolve) => {
        lease.signal.addEventListener('abort', () => setTimeout(() => { console.log('finished'); resolve() }, ms))
        setTimeout(() => process.kill(process.pid, 'SIGTERM'))
      }))
      const alive = setInterval(() => {}, 1000)
      ${body}`)

  it('drains what is held, then lets the signal end the process', async () => {
    const { signal, output } = await signalled(`
      holdfast.closeOn(['SIGTERM'], { onClosed: ({ cutShort }, by) => console.log(by, cutShort.length) })
      await section(50)
      await new Promise(() => {})`)
    expect({ signal, output }).toEqual({ signal: 'SIGTERM', output: 'finished\nSIGTERM 0' })
  })

  it('drains it also where a signal is named twice', async () => {
    const { signal, output } = await signalled(`
      holdfast.closeOn(['SIGTERM', 'SIGINT', 'SIGTERM'], { onClosed: ({ cutShort }) => console.log(cutShort.length) })
      await section(50)
      await new Promise(() => {})`)
    expect({ signal, output }).toEqual({ signal: 'SIGTERM', output: 'finished\n0' })
  })

  it('ends the first process of a container, to which such a signal does nothing, as shells tell of it', async () => {
    const { code, output } = await signalled(`
      const { kill } = process
      process.kill = (pid, signal) => pid === 1 || kill.call(process, pid, signal)
      const first = () => { console.log('closed'); Object.defineProperty(process, 'pid', { value: 1 }) }
      holdfast.closeOn(['SIGTERM'], { onClosed: first })
      setTimeout(() => process.exit(70), 10_000)
      await section(50)
      await new Promise(() => {})`)
    expect({ code, output }).toEqual({ code: 143, output: 'finished\nclosed' })
  })

  it('leaves the end of the process to others that listen to the signal', async () => {
    const { code, output } = await signalled(`
      holdfast.closeOn(['SIGTERM'], { onClosed: () => { console.log('closed'); clearInterval(alive) } })
      process.on('SIGTERM', () => { process.exitCode = 3 })
      await section(50)`)
    expect({ code, output }).toEqual({ code: 3, output: 'finished\nclosed' })
  })

  it.each(['before', 'after'])('leaves it to one that listens once, and came %s it', async (when) => {
    const theirs = `process.once('SIGTERM', async () => {
      await closed
      setTimeout(() => { console.log('answered'); process.exit(3) }, 50)
    })`
    const ours = `const closed = new Promise((onClosed) => holdfast.closeOn(['SIGTERM'], { onClosed }))`
    const { code, output } = await signalled(`
      ${when === 'before' ? `${theirs}\n${ours}` : `${ours}\n${theirs}`}
      await section(50)
      await new Promise(() => {})`)
    expect({ code, output }).toEqual({ code: 3, output: 'finished\nanswered' })
  })

  /** As the package signal-exit does it, that many others bring along: it counts its copies, and ends the process where nobody else listens. */
  const signalExit = (emitter: string): string => `{
    const emitter = ${emitter}
    emitter.count = (emitter.count ?? 0) + 1
    const onSignal = () => {
      const { __signal_exit_emitter__: three, [Symbol.for('signal-exit emitter')]: four } = { ...process, ...globalThis }
      const all = emitter === three ? three.count : (three?.count ?? 0) + four.count
      if (process.listenerCount('SIGTERM') !== all) return
      process.off('SIGTERM', onSignal)
      emitter.count--
      console.log('told')
      process.kill(process.pid, 'SIGTERM')
    }
    process.on('SIGTERM', onSignal)
  }`
  const [three, four] = [
    'process.__signal_exit_emitter__ ??= {}',
    "globalThis[Symbol.for('signal-exit emitter')] ??= {}",
  ]

  it.each([
    ['the third', [three]],
    ['the fourth', [four]],
    ['both', [three, four]],
  ])('does not wait for signal-exit, %s of its versions, which waits for everybody else', async (_, all) => {
    const { signal, output } = await signalled(`
      ${all.map(signalExit).join('\n')}
      holdfast.closeOn(['SIGTERM'], { onClosed: () => console.log('closed') })
      await section(50)
      await new Promise(() => {})`)
    const told = all.map(() => 'told').join('\n')
    expect({ signal, output }).toEqual({ signal: 'SIGTERM', output: `finished\nclosed\n${told}` })
  })

  it('leaves the end of the process to others beside signal-exit', async () => {
    const { code, output } = await signalled(`
      ${signalExit(three)}
      holdfast.closeOn(['SIGTERM'], { onClosed: () => { console.log('closed'); clearInterval(alive) } })
      process.once('SIGTERM', () => setTimeout(() => process.exit(3), 300))
      await section(50)
      await new Promise(() => {})`)
    expect({ code, output }).toEqual({ code: 3, output: 'finished\nclosed' })
  })

  it('says what became of closing, or of onClosed, before the process ends', async () => {
    const { signal, output } = await signalled(`
      process.on('warning', ({ code, message }) => console.log(code, message))
      holdfast.closeOn(['SIGTERM'], { onClosed: () => { throw new Error('mine') } })
      await section(1)
      await new Promise(() => {})`)
    expect(signal).toBe('SIGTERM')
    expect(output).toContain('HOLDFAST_CLOSE_FAILED Closing at SIGTERM failed: Error: mine')
  })

  it('of several ends the process when the last one is closed', async () => {
    const { signal, output } = await signalled(`
      const told = (name) => ({ onClosed: () => console.log(name) })
      holdfast.closeOn(['SIGTERM'], told('slow'))
      new Holdfast(memoryStore()).closeOn(['SIGTERM', 'SIGINT'], told('quick'))
      await section(50)
      await new Promise(() => {})`)
    expect({ signal, output }).toEqual({ signal: 'SIGTERM', output: 'quick\nfinished\nslow' })
  })

  it('waits no longer at a second signal', async () => {
    const { signal, output } = await signalled(`
      holdfast.closeOn(['SIGTERM', 'SIGINT'], { drain: 60_000, onClosed: ({ cutShort }) => console.log(cutShort.join()) })
      setTimeout(() => process.kill(process.pid, 'SIGINT'), 200)
      await section(60_000)`)
    expect({ signal, output }).toEqual({ signal: 'SIGTERM', output: 'x' })
  })

  it('does not wait for an onClosed that never ends, once it is told again', async () => {
    const { signal, output } = await signalled(`
      holdfast.closeOn(['SIGTERM', 'SIGINT'], { onClosed: () => {
        console.log('closed')
        setTimeout(() => process.kill(process.pid, 'SIGINT'), 50)
        return new Promise(() => {})
      } })
      await section(1)`)
    expect({ signal, output }).toEqual({ signal: 'SIGINT', output: 'finished\nclosed' })
  })

  it('can be undone, and refuses what is no signal', async () => {
    const { signal, output } = await signalled(`
      for (const wrong of ['SIGTERM', ['SIGNOTHING'], [9]]) {
        try { holdfast.closeOn(wrong) } catch (error) { console.log(error.code) }
      }
      holdfast.closeOn(['SIGTERM'])()
      await section(50)`)
    expect({ signal, output }).toEqual({
      signal: 'SIGTERM',
      output: Array(3).fill('INVALID_ARGUMENT').join('\n'),
    })
  })
})
