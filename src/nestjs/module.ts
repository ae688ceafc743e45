import { Logger, Module } from '@nestjs/common'
import type {
  BeforeApplicationShutdown,
  DynamicModule,
  FactoryProvider,
  ModuleMetadata,
  Provider,
} from '@nestjs/common'

import { checkFunction, checkOptions } from '../core/arguments.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import { checkSource, closeSource, holdfastOf, SOURCE } from '../source.ts'
import type { HoldfastSource } from '../source.ts'
import { HoldfastHealth } from './health.ts'
import { holdfastToken } from './tokens.ts'

export interface HoldfastModuleOptions extends HoldfastSource {
  /** For a second one. `@InjectHoldfast(name)` injects it. */
  readonly name?: string | undefined
}

export interface HoldfastModuleAsyncOptions {
  /** For a second one. `@InjectHoldfast(name)` injects it. */
  readonly name?: string | undefined
  readonly imports?: ModuleMetadata['imports'] | undefined
  /** What `useFactory` is called with. */
  readonly inject?: FactoryProvider['inject'] | undefined
  // eslint-disable-next-line typescript/no-explicit-any -- what is injected has the types that the user says
  readonly useFactory: (...injected: any[]) => HoldfastSource | Promise<HoldfastSource>
}

const NAMED: readonly (keyof HoldfastModuleOptions)[] = [...SOURCE, 'name']
const ASYNC: readonly (keyof HoldfastModuleAsyncOptions)[] = ['name', 'imports', 'inject', 'useFactory']

/** Gives every module of the application its locks, and closes them before the application waits for its requests. */
export class HoldfastModule {
  static {
    Module({})(HoldfastModule)
  }

  static forRoot(options: HoldfastModuleOptions): DynamicModule {
    checkOptions(options, NAMED, 'url')
    const { name, ...given } = options
    checked(given)
    return moduleOf({ name, useFactory: () => given })
  }

  static forRootAsync(options: HoldfastModuleAsyncOptions): DynamicModule {
    checkOptions(options, ASYNC, 'useFactory')
    if (typeof options.useFactory !== 'function') checkFunction('useFactory', options.useFactory ?? null)
    return moduleOf(options)
  }
}

function moduleOf({ name, imports, inject, useFactory }: HoldfastModuleAsyncOptions): DynamicModule {
  const token = holdfastToken(name)
  const source = Symbol('options of holdfast')
  const sourceOf = async (...injected: unknown[]): Promise<HoldfastSource> =>
    checked(await useFactory(...injected))
  const providers: Provider[] = [
    { provide: source, inject: inject ?? [], useFactory: sourceOf },
    { provide: token, inject: [source], useFactory: holdfastOf },
    {
      provide: Shutdown,
      inject: [token, source],
      useFactory: (holdfast: Holdfast, given: HoldfastSource) => new Shutdown(holdfast, given),
    },
  ]
  if (name === undefined)
    providers.push({
      provide: HoldfastHealth,
      inject: [token],
      useFactory: (holdfast: Holdfast) => new HoldfastHealth(holdfast),
    })
  return {
    module: HoldfastModule,
    global: true,
    imports: imports ?? [],
    providers,
    exports: name === undefined ? [token, HoldfastHealth] : [token],
  }
}

function checked(given: HoldfastSource): HoldfastSource {
  checkOptions(given, SOURCE, 'url')
  checkSource(given)
  return given
}

/** Before the server waits for its requests: those that hold a lock are told, and those that wait for one turned away. */
class Shutdown implements BeforeApplicationShutdown {
  private readonly holdfast: Holdfast
  private readonly source: HoldfastSource

  constructor(holdfast: Holdfast, source: HoldfastSource) {
    this.holdfast = holdfast
    this.source = source
  }

  async beforeApplicationShutdown(): Promise<void> {
    const log = new Logger('Holdfast')
    for (const line of await closeSource(this.holdfast, this.source)) log.warn(line)
  }
}
