import type { Capabilities } from './contract.ts'

const isBoolean = (value: unknown): boolean => typeof value === 'boolean'
const isTime = (value: unknown): boolean => typeof value === 'number' && value >= 0
const oneOf =
  (...words: readonly string[]) =>
  (value: unknown): boolean =>
    words.includes(value as string)

/** What a store says of itself, and whether it may say that. */
export const CAPABILITIES: Readonly<Record<keyof Capabilities, (value: unknown) => boolean>> = {
  queue: isBoolean,
  shared: isBoolean,
  permits: isBoolean,
  fencing: oneOf('monotonic', 'weak'),
  wakeups: oneOf('push', 'poll'),
  reach: oneOf('process', 'machine', 'network'),
  minTtl: isTime,
  maxTtl: isTime,
  earlyExpiry: isTime,
  lateExpiry: (value) => value === undefined || isTime(value),
  waitsAfterCrash: (value) => value === undefined || isBoolean(value),
  guarantees: (value) => typeof value === 'object' && value !== null,
}
