import { expect, it } from 'vitest'

import { PendingRequests } from '../../../src/stores/holdfast/pending.ts'

it('does not send what is late, also when the event loop stood still and no timer could say so', async () => {
  const requests = new PendingRequests(
    () => undefined,
    () => undefined,
  )
  const late = requests.add('ping', null, 20)
  const patient = requests.add('ping', null, 10_000)
  const end = performance.now() + 40
  while (performance.now() < end) continue
  expect(requests.takeUnsent()).toBe('[2,"ping",null,10000]\n')
  expect(await late).toMatchObject({ kind: 'unknown' })
  requests.settle(2, { kind: 'done' })
  expect(await patient).toEqual({ kind: 'done' })
})
