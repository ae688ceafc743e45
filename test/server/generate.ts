import fc from 'fast-check'

import type { Schema } from './schema.ts'

type Find = (ref: string) => Schema

/** Values that a schema allows, its edges more often than the rest. */
export function allowedBy(schema: Schema, find: Find): fc.Arbitrary<unknown> {
  const { $ref, oneOf, anyOf, enum: among, const: only, type } = schema
  if (typeof $ref === 'string') return allowedBy(find($ref), find)
  if (Array.isArray(oneOf)) return fc.oneof(...(oneOf as Schema[]).map((one) => allowedBy(one, find)))
  if (Array.isArray(anyOf)) {
    const { anyOf: _, ...rest } = schema
    return fc.oneof(...(anyOf as Schema[]).map((one) => allowedBy({ ...rest, ...one }, find)))
  }
  if (only !== undefined) return fc.constant(only)
  if (Array.isArray(among)) return fc.constantFrom(...(among as unknown[]))
  switch (type) {
    case 'string':
      return textBy(schema)
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return wholeBy(schema)
    case 'array': {
      const { minItems = 0, maxItems = 5 } = schema as { minItems?: number; maxItems?: number }
      return fc.array(allowedBy(schema['items'] as Schema, find), {
        minLength: minItems,
        maxLength: Math.min(maxItems, minItems + 4),
      })
    }
    case 'object': {
      const properties = schema['properties'] as Record<string, Schema>
      const made = Object.fromEntries(
        Object.entries(properties).map(([key, one]) => [key, allowedBy(one, find)]),
      )
      return fc.record(made, { requiredKeys: schema['required'] as string[] })
    }
    default:
      throw new Error(`the generator does not know the type ${String(type)}`)
  }
}

const LETTERS = [
  'x',
  '0',
  ' ',
  '.',
  '..',
  '/',
  '%',
  'ä',
  '漢',
  '😀',
  '\u202e',
  '\u200d',
  "'",
  '"',
  '\\',
  '{',
  '*',
]

function textBy(schema: Schema): fc.Arbitrary<string> {
  const {
    minLength = 0,
    maxLength = 60,
    pattern,
  } = schema as {
    minLength?: number
    maxLength?: number
    pattern?: string
  }
  const form = pattern === undefined ? /^/u : new RegExp(pattern, 'u')
  const sized = (text: string): boolean => {
    const size = Array.from(text).length
    return size >= minLength && size <= maxLength && form.test(text)
  }
  const some = pattern === undefined ? fc.string({ unit: 'binary', maxLength: 40 }) : fc.stringMatching(form)
  const edges = LETTERS.flatMap((letter) => [letter, letter.repeat(maxLength)]).filter(sized)
  return edges.length === 0 ? some.filter(sized) : fc.oneof(some.filter(sized), fc.constantFrom(...edges))
}

function wholeBy(schema: Schema): fc.Arbitrary<number> {
  const { minimum = -(2 ** 31), maximum = 2 ** 31 - 1 } = schema as { minimum?: number; maximum?: number }
  return fc.oneof(fc.integer({ min: minimum, max: maximum }), fc.constantFrom(minimum, maximum))
}

const WRONG: readonly unknown[] = [
  null,
  true,
  [],
  {},
  '',
  '10',
  '\0',
  'a\nb',
  0,
  -1,
  1.5,
  2 ** 31,
  1e308,
  'x'.repeat(2000),
]

/** What a schema allows, with one thing about it changed. It may still be allowed: whoever uses it looks. */
export function nearlyAllowedBy(schema: Schema, find: Find): fc.Arbitrary<unknown> {
  return fc
    .tuple(
      allowedBy(schema, find),
      fc.nat(),
      fc.constantFrom(...WRONG),
      fc.constantFrom('drop', 'add', 'change'),
    )
    .map(([value, at, wrong, what]) => {
      if (typeof value !== 'object' || value === null) return wrong
      const keys = Object.keys(value)
      const key = keys[at % Math.max(1, keys.length)] ?? 'name'
      if (what === 'add') return { ...value, [`${key}s`]: wrong }
      if (what === 'change') return { ...value, [key]: wrong }
      const { [key]: _, ...rest } = value as Record<string, unknown>
      return rest
    })
}
