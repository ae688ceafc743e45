import { describe, expect, it } from 'vitest'

import type { Driver } from '../../../../src/stores/redis/client/driver.ts'
import { Silence } from '../../../../src/stores/redis/silence.ts'

function setUp() {
  const state = { ready: true, resets: [] as string[] }
  const link = {
    ready: () => state.ready,
    nodeOf: (key: string) => key.slice(0, 1),
    reset: (key: string) => void state.resets.push(key.slice(0, 1)),
  } as unknown as Driver
  return { state, silence: new Silence(link) }
}

describe('a server that has fallen silent', () => {
  it('is connected to once more, however many requests it did not answer', () => {
    const { state, silence } = setUp()
    for (let request = 0; request < 1_000; request++) silence.noAnswer(`a${request}`, 5_000)
    // What was asked over the old connection says nothing about the new one, which is being made.
    state.ready = false
    for (let request = 0; request < 1_000; request++) silence.noAnswer(`a${request}`, 5_000)
    expect(state.resets).toEqual(['a'])
  })

  it('is one of several', () => {
    const { state, silence } = setUp()
    for (const key of ['a1', 'b1', 'a2', 'b2']) silence.noAnswer(key, 5_000)
    expect(state.resets).toEqual(['a', 'b'])
  })

  it('is connected to again if the new connection is as silent', async () => {
    const { state, silence } = setUp()
    silence.noAnswer('a1', 5_000)
    await new Promise((resolve) => void setTimeout(resolve, 1_050))
    silence.noAnswer('a2', 1_040)
    expect(state.resets).toEqual(['a', 'a'])
  })

  it('and takes no writes is left once, however many it refused in that moment', () => {
    const { state, silence } = setUp()
    for (let request = 0; request < 1_000; request++) silence.refused(`a${request}`)
    expect(state.resets).toEqual(['a'])
  })
})
