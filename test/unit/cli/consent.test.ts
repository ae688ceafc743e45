import { PassThrough } from 'node:stream'

import { describe, expect, it } from 'vitest'

import { consent } from '../../../src/cli/lab/consent.ts'

const FAR = { url: 'redis://192.0.2.1', shown: 'redis://192.0.2.1' } as const

function terminal(answer: string) {
  const [input, output] = [new PassThrough(), new PassThrough()]
  input.end(answer)
  const asked = () => String(output.read() ?? '')
  return {
    asked,
    streams: { input: Object.assign(input, { isTTY: true }), output: Object.assign(output, { isTTY: true }) },
  }
}

describe('the lab, before it touches what is not on this machine,', () => {
  it.each(['y', 'Y', 'yes', ' yes '])('asks, and goes on for "%s"', async (answer) => {
    const { asked, streams } = terminal(`${answer}\n`)
    await consent(FAR, '8 clients will contend for locks there.', { yes: false, ...streams })
    expect(asked()).toContain(
      'redis://192.0.2.1 is not on this machine.\n8 clients will contend for locks there.\nGo on? [y/N] ',
    )
  })

  it.each(['', 'n', 'no', 'yet', 'always'])('asks, and does nothing for "%s"', async (answer) => {
    const { streams } = terminal(`${answer}\n`)
    await expect(consent(FAR, 'Much happens.', { yes: false, ...streams })).rejects.toThrow(
      'Nothing was done.',
    )
  })

  it('asks nobody who has agreed already, and nobody for this machine', async () => {
    const { asked, streams } = terminal('n\n')
    await consent(FAR, 'Much happens.', { yes: true, ...streams })
    await consent({ ...FAR, url: 'redis://127.0.0.1' }, 'Much happens.', { yes: false, ...streams })
    expect(asked()).toBe('')
  })
})
