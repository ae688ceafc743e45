import { DEFAULT_LIMITS } from '../../src/server/limits.ts'
import type { Limits } from '../../src/server/limits.ts'
import { openapiOf } from '../../src/server/openapi/index.ts'
import type { Answer } from './helpers.ts'
import { faults } from './schema.ts'
import type { Schema } from './schema.ts'

export interface Content {
  readonly schema: Schema
  readonly example?: unknown
}

export interface Operation {
  readonly security?: readonly unknown[]
  readonly parameters?: readonly {
    readonly in?: string
    readonly name?: string
    readonly example?: string
    readonly schema?: Schema
  }[]
  readonly requestBody?: { readonly content: Record<string, Content> }
  readonly responses: Record<
    string,
    { readonly description: string; readonly content: Record<string, Content> }
  >
}

export interface Described {
  readonly path: string
  readonly method: string
  readonly operation: Operation
}

/** The server's own description, as a test reads it. */
export interface Description {
  readonly paths: Readonly<Record<string, Record<string, Operation>>>
  readonly operations: readonly Described[]
  readonly find: (ref: string) => Schema
  /** What an answer has that the description does not, as sentences. */
  undescribed(one: Described, answer: Answer): string[]
}

export function description(limits: Limits = DEFAULT_LIMITS): Description {
  const openapi = openapiOf(limits)
  const paths = openapi['paths'] as Record<string, Record<string, Operation>>
  const { schemas } = openapi['components'] as { schemas: Record<string, Schema> }
  const find = (ref: string): Schema => schemas[ref.split('/').at(-1) ?? ''] ?? {}
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const undescribed = ({ path, operation }: Described, { status, headers, body, text }: Answer): string[] => {
    const told = operation.responses[String(status)]
    if (told === undefined) return [`${path} answers ${status}: ${text}`]
    const type = String(headers['content-type']).split(';')[0] ?? ''
    const content = told.content[type]
    if (content === undefined) return [`${path} answers ${status} as ${type}`]
    if (type !== 'application/json') return []
    if (status >= 400 && !told.description.split(', ').includes(body.error.code))
      return [`${path} answers ${body.error.code}`]
    return faults(content.schema, body, find)
  }
  return { paths, operations, find, undescribed }
}
