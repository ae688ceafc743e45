import { getPrismaClient } from '@prisma/client/runtime/client'

export interface Prisma {
  $transaction<T>(work: (tx: Prisma) => Promise<T>): Promise<T>
  $queryRawUnsafe(sql: string, ...params: unknown[]): PromiseLike<unknown>
  $executeRawUnsafe(sql: string, ...params: unknown[]): PromiseLike<number>
  $disconnect(): Promise<void>
}

// The library of types that this repository is checked with has no browsers' names.
const { Module } = (globalThis as unknown as { WebAssembly: { Module: new (bytes: Uint8Array) => unknown } })
  .WebAssembly

type Config = Parameters<typeof getPrismaClient>[0]
type Provider = 'postgresql' | 'mysql'

/**
 * The client that `prisma generate` would write for a schema without models. Its program is left out here: it wants an
 * engine that it downloads, for which the client with a driver adapter has no use.
 */
export function prismaClient(provider: Provider, adapter: unknown): Prisma {
  const config: Config = {
    previewFeatures: [],
    clientVersion: '7.10.0',
    engineVersion: '',
    activeProvider: provider,
    inlineSchema: `datasource db {\n  provider = "${provider}"\n}\n`,
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: 'AAAA' },
    compilerWasm: {
      getRuntime: () => import(`@prisma/client/runtime/query_compiler_fast_bg.${provider}.mjs`) as never,
      getQueryCompilerWasmModule: async () => {
        const path = `@prisma/client/runtime/query_compiler_fast_bg.${provider}.wasm-base64.mjs`
        const { wasm } = (await import(path)) as { wasm: string }
        return new Module(Buffer.from(wasm, 'base64')) as never
      },
      importName: './query_compiler_fast_bg.js',
    },
  } as Config
  const Client = getPrismaClient(config) as unknown as new (options: { adapter: unknown }) => Prisma
  return new Client({ adapter })
}
