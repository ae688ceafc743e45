import { DEFAULT_LIMITS } from '../limits.ts'
import type { Limits } from '../limits.ts'
import { pathsOf } from './paths.ts'
import { schemasOf } from './schemas.ts'

/** The description of the HTTP interface of a server with these limits, as it gives it out. */
export const openapiOf = (limits: Limits): Readonly<Record<string, unknown>> => ({
  openapi: '3.1.0',
  info: {
    title: 'holdfast lock server',
    version: '1',
    description:
      'Locks with leases, fencing tokens and a fair queue. Durations are milliseconds. GET /v1/session is not described here: ' +
      'it leaves HTTP, with "Connection: Upgrade", "Upgrade: holdfast.1" and "Holdfast-Request: 1", and goes on in lines of ' +
      'JSON; docs/server.md describes those.',
  },
  servers: [{ url: 'http://127.0.0.1:7420' }],
  security: [{ token: [] }, {}],
  paths: pathsOf(limits),
  components: {
    securitySchemes: {
      token: { type: 'http', scheme: 'bearer', description: 'Where the server has a tokens file.' },
    },
    parameters: {
      HoldfastRequest: {
        name: 'Holdfast-Request',
        in: 'header',
        required: true,
        description: 'Anything. A web page cannot send it to another site without asking first.',
        schema: { type: 'string' },
        example: '1',
      },
    },
    schemas: schemasOf(limits),
  },
})

/** docs/openapi.json is a copy. */
export const openapi: Readonly<Record<string, unknown>> = openapiOf(DEFAULT_LIMITS)
