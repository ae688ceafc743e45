/** As much of JSON Schema as the description of the server uses. Throws for what it does not know. */
export type Schema = Readonly<Record<string, unknown>>

const KNOWN = new Set([
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'const',
  'pattern',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'oneOf',
  'anyOf',
  '$ref',
  'description',
  'default',
])

type Find = (ref: string) => Schema

/** What is wrong with a value, as sentences. */
export function faults(schema: Schema, value: unknown, find: Find, at = 'value'): string[] {
  const stranger = Object.keys(schema).find((key) => !KNOWN.has(key))
  if (stranger !== undefined) throw new Error(`the checker does not know "${stranger}"`)
  const { $ref, oneOf, anyOf, enum: among, const: only, type } = schema
  if (typeof $ref === 'string') return faults(find($ref), value, find, at)
  const fitting = (all: unknown): number =>
    (all as Schema[]).filter((one) => faults(one, value, find).length === 0).length
  if (Array.isArray(oneOf) && fitting(oneOf) !== 1)
    return [`${at} fits ${fitting(oneOf)} of the alternatives`]
  if (Array.isArray(anyOf) && fitting(anyOf) === 0) return [`${at} fits none of the alternatives`]
  if (Array.isArray(among) && !among.includes(value)) return [`${at} is none of ${among.join(', ')}`]
  if (only !== undefined && only !== value) return [`${at} is not ${JSON.stringify(only)}`]
  if (type !== undefined && !hasType(type, value)) return [`${at} is no ${JSON.stringify(type)}`]
  if (typeof value === 'string') return stringFaults(schema, value, at)
  if (typeof value === 'number') return boundFaults(schema, ['minimum', 'maximum'], value, at)
  if (Array.isArray(value)) {
    const items = schema['items'] as Schema | undefined
    return [
      ...boundFaults(schema, ['minItems', 'maxItems'], value.length, at),
      ...(items === undefined
        ? []
        : value.flatMap((one, index) => faults(items, one, find, `${at}[${index}]`))),
    ]
  }
  return type === 'object' ? objectFaults(schema, value as Record<string, unknown>, find, at) : []
}

function stringFaults(schema: Schema, value: string, at: string): string[] {
  const { pattern } = schema
  if (typeof pattern === 'string' && !new RegExp(pattern, 'u').test(value)) return [`${at} does not match`]
  return boundFaults(schema, ['minLength', 'maxLength'], Array.from(value).length, at)
}

function boundFaults(schema: Schema, [low, high]: [string, string], size: number, at: string): string[] {
  const { [low]: least = -Infinity, [high]: most = Infinity } = schema as Record<string, number>
  return size < least || size > most ? [`${at} is beyond ${low} or ${high}`] : []
}

function objectFaults(schema: Schema, value: Record<string, unknown>, find: Find, at: string): string[] {
  const properties = (schema['properties'] ?? {}) as Record<string, Schema>
  const missing = ((schema['required'] ?? []) as string[])
    .filter((key) => !(key in value))
    .map((key) => `${at}.${key} is missing`)
  const inside = Object.entries(value).flatMap(([key, one]) => {
    const known = properties[key]
    if (known !== undefined) return faults(known, one, find, `${at}.${key}`)
    return schema['additionalProperties'] === false ? [`${at}.${key} is not described`] : []
  })
  return [...missing, ...inside]
}

function hasType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value)
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    default:
      return typeof value === type
  }
}
