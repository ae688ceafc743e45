/** As much of JSON Schema as the description of the server uses. Throws for what it does not know. */
type Schema = Readonly<Record<string, unknown>>

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
  '$ref',
  'description',
  'default',
])

/** What is wrong with a value, as sentences. */
export function faults(
  schema: Schema,
  value: unknown,
  find: (ref: string) => Schema,
  at = 'value',
): string[] {
  const stranger = Object.keys(schema).find((key) => !KNOWN.has(key))
  if (stranger !== undefined) throw new Error(`the checker does not know "${stranger}"`)
  const { $ref, oneOf, enum: among, const: only, type } = schema
  if (typeof $ref === 'string') return faults(find($ref), value, find, at)
  if (Array.isArray(oneOf)) {
    const fitting = (oneOf as Schema[]).filter((one) => faults(one, value, find).length === 0)
    return fitting.length === 1 ? [] : [`${at} fits ${fitting.length} of the alternatives`]
  }
  if (Array.isArray(among) && !among.includes(value)) return [`${at} is none of ${among.join(', ')}`]
  if (only !== undefined && only !== value) return [`${at} is not ${JSON.stringify(only)}`]
  if (!hasType(type, value)) return [`${at} is no ${String(type)}`]
  if (type === 'string') {
    const { pattern } = schema
    return typeof pattern === 'string' && !new RegExp(pattern).test(value as string)
      ? [`${at} does not match`]
      : []
  }
  if (type === 'array')
    return (value as unknown[]).flatMap((one, index) =>
      faults(schema['items'] as Schema, one, find, `${at}[${index}]`),
    )
  return type === 'object' ? objectFaults(schema, value as Record<string, unknown>, find, at) : []
}

function objectFaults(
  schema: Schema,
  value: Record<string, unknown>,
  find: (ref: string) => Schema,
  at: string,
): string[] {
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
