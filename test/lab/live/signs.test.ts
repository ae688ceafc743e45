import { describe, expect, it } from 'vitest'

import { Diary } from '../../../src/lab/live/diary.ts'
import { nemesis } from '../../../src/lab/live/index.ts'
import type { Scene } from '../../../src/lab/live/scene.ts'

/** A run of which nothing is real but what is written down. */
function strike(notice: (scene: Pick<Scene, 'errors' | 'diary' | 'onlooker'>) => void): Promise<void> {
  const diary = new Diary()
  const onlooker = { looks: [], stalls: [] } as unknown as Scene['onlooker']
  const seen = { errors: [], diary, onlooker }
  const scene = {
    ...seen,
    stage: { admin: { failover: async () => notice(seen) } },
    lingerer: async () => ({ client: {}, name: 'n' }),
    goOn: () => undefined,
  }
  const failover = nemesis('failover')
  if (failover === undefined) throw new Error('there is no fault "failover"')
  return failover.strike(scene as unknown as Scene)
}

/** Keeps this process from everything else, as a machine does that has no processor for it. */
function standStill(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('A failover', () => {
  it('that nobody noticed was none', async () => {
    await expect(strike(() => undefined)).rejects.toThrow('nobody noticed')
  })

  it('is noticed where questions are not answered, a call fails or a lease is lost', async () => {
    const at = process.hrtime.bigint()
    const failed = { client: 'a', call: 'release', from: at, at, message: 'no answer' }
    const lost = { process: 'a', op: 1, kind: 'lost', phase: 'ok', at, name: 'n' } as const
    await expect(strike(() => standStill(400))).resolves.toBeUndefined()
    await expect(strike(({ errors }) => void errors.push(failed))).resolves.toBeUndefined()
    await expect(strike(({ diary }) => diary.write(lost))).resolves.toBeUndefined()
  })

  it('is not noticed where the machine has no processor for anybody', async () => {
    const busy = strike(({ diary, onlooker }) => {
      const from = diary.now()
      standStill(400)
      onlooker.stalls.push({ from, to: diary.now() })
    })
    await expect(busy).rejects.toThrow('nobody noticed')
  })
})
