import { describe, expect, it } from 'vitest'

import { parseDuration, parseWait, showDuration } from '../../../src/cli/duration.ts'

describe('a time on the command line', () => {
  it.each([
    ['0', 0],
    ['500ms', 500],
    ['30s', 30_000],
    ['1.5s', 1500],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration('--ttl', text)).toBe(ms)
  })

  it('needs a unit, because a number alone could be seconds or milliseconds', () => {
    expect(() => parseDuration('--ttl', '30')).toThrow('--ttl 30: of what? Say 30s or 30ms')
  })

  it.each(['', 's', '-1s', '5 s', '5y', '1e3s', 'soon', '25d'])('"%s" is refused', (text) => {
    expect(() => parseDuration('--ttl', text)).toThrow('--ttl')
  })

  it('may be "forever" only where one waits', () => {
    expect(parseWait('--wait', 'forever')).toBe(Infinity)
    expect(() => parseDuration('--ttl', 'forever')).toThrow('--ttl')
  })

  it.each([
    [3.2, '3ms'],
    [12_340, '12.3s'],
    [245_000, '4m 05s'],
    [12_000_000, '3h 20m'],
    [200_000_000, '2d 07h'],
    [Infinity, 'forever'],
  ])('%d ms are shown as %s', (ms, text) => {
    expect(showDuration(ms)).toBe(text)
  })
})
