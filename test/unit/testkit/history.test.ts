import { describe, expect, it } from 'vitest'

import { fromLines, Recorder, toLines } from '../../../src/testkit/history.ts'
import type { Story } from '../../../src/testkit/history.ts'
import { holdsOf } from '../../../src/testkit/holds.ts'
import type { Hold } from '../../../src/testkit/holds.ts'

const MS = 1_000_000n

/** A process whose clock moves by one millisecond per stamp, and says so. */
function recorded(tell: (story: Story, at: (ms: number) => void) => void): {
  recorder: Recorder
  holds: Hold[]
} {
  let now = 0
  const recorder = new Recorder('p', { now: () => BigInt(now) * MS })
  const at = (ms: number): void => void (now = ms)
  at(1)
  tell(recorder.acquire('n'), at)
  return { recorder, holds: holdsOf(recorder.events) }
}

const lease = (remaining: number, token = 7n): { token: bigint; remaining(): number } => ({
  token,
  remaining: () => remaining,
})

describe('a recorded hold', () => {
  it('begins when the lock was returned and ends when its release was called', () => {
    const { holds } = recorded((story, at) => {
      at(5)
      story.acquired(lease(100))
      at(20)
      story.releasing()
      at(30)
      story.released('released')
    })
    expect(holds).toMatchObject([
      { invoked: 1n * MS, from: 5n * MS, to: 20n * MS, token: 7n, queued: undefined },
    ])
  })

  it('ends with the belief, however late the release comes', () => {
    const { holds } = recorded((story, at) => {
      at(5)
      story.acquired(lease(100))
      at(300)
      story.lost()
      story.releasing()
      story.released('expired')
    })
    expect(holds).toMatchObject([{ from: 5n * MS, to: 105n * MS }])
  })

  it('lasts as long as a renewed lease was seen to be good for', () => {
    const { holds } = recorded((story, at) => {
      story.acquired(lease(100))
      at(90)
      story.check(lease(100))
      at(500)
      story.releasing()
    })
    expect(holds).toMatchObject([{ to: 190n * MS, laterTokens: [7n] }])
  })

  it('ends when the loss was noticed, even if it was believed in for longer', () => {
    const { holds } = recorded((story, at) => {
      story.acquired(lease(100))
      at(50)
      story.lost()
    })
    expect(holds).toMatchObject([{ to: 50n * MS }])
  })

  it('is none when the outcome is unknown or a failure', () => {
    expect(recorded((story) => story.unknown()).holds).toEqual([])
    expect(recorded((story) => story.failed()).holds).toEqual([])
  })

  it('remembers when it stood in line', () => {
    const { holds } = recorded((story, at) => {
      at(3)
      story.queued()
      at(9)
      story.acquired(lease(1))
    })
    expect(holds).toMatchObject([{ queued: 3n * MS, from: 9n * MS }])
  })

  it('proves nothing when its process died without a word about its belief', () => {
    const recorder = new Recorder('p', { now: () => 5n })
    recorder.acquire('n').write('acquire', 'ok', { token: 1n })
    expect(holdsOf(recorder.events)).toMatchObject([{ from: 5n, to: 5n }])
  })
})

describe('a history', () => {
  it('survives being written as lines', () => {
    const { recorder } = recorded((story) => {
      story.acquired(lease(2.5, 2n ** 63n))
      story.releasing()
    })
    const lines = toLines(recorder.events)
    expect(lines.trimEnd().split('\n')).toHaveLength(3)
    expect(fromLines(lines)).toEqual(recorder.events)
  })

  it('tells apart the grants of several processes', () => {
    const recorders = ['a', 'b'].map(
      (process, index) => new Recorder(process, { now: () => BigInt(10 - index) }),
    )
    for (const recorder of recorders) recorder.acquire('n').acquired(lease(1))
    const holds = holdsOf(recorders.flatMap(({ events }) => events))
    expect(holds.map(({ process, op }) => [process, op])).toEqual([
      ['b', 1],
      ['a', 1],
    ])
  })

  it('passes each event on as it is written', () => {
    const heard: string[] = []
    const recorder = new Recorder('p', { onEvent: ({ kind, phase }) => heard.push(`${kind} ${phase}`) })
    const story = recorder.acquire('n')
    story.acquired(lease(1))
    expect(heard).toEqual(['acquire invoke', 'acquire ok'])
  })
})
