import { paths } from './paths.ts'
import { schemas } from './schemas.ts'

/** The description of the HTTP interface, as the server gives it out. docs/openapi.json is a copy. */
export const openapi: Readonly<Record<string, unknown>> = {
  openapi: '3.1.0',
  info: {
    title: 'holdfast lock server',
    version: '1',
    description: 'Locks with leases, fencing tokens and a fair queue. Durations are milliseconds.',
  },
  servers: [{ url: 'http://127.0.0.1:7420' }],
  security: [{ token: [] }, {}],
  paths,
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
    schemas,
  },
}
