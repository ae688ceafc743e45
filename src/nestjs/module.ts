import { Logger, Module } from '@nestjs/common'
import type {
  BeforeApplicationShutdown,
  DynamicModule,
  FactoryProvider,
  ModuleMetadata,
  Provider,
} from '@nestjs/common'

import { checkFunction, checkOptions } from '../core/arguments.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import { checkClose, Holdfast } from '../locks/holdfast.ts'
import type { CloseOptions } from '../locks/holdfast.ts'
import { OPTIONS } from '../locks/options.ts'
import { open } from '../open.ts'
import type { OpenOptions } from '../open.ts'
import { HoldfastHealth } from './health.ts'
import { holdfastToken } from './tokens.ts'

/** Give one of `url` and `holdfast`. */
export interface HoldfastOfModule {
  /** For `open()`: `redis://localhost`. */
  readonly url?: string | undefined
  /** For the same `open()`. */
  readonly options?: OpenOptions | undefined
  /** One of your own. It is closed at shutdown too; its client stays yours to end. */
  readonly holdfast?: Holdfast | undefined
  /** How the locks are closed at shutdown; `false`: not at all. */
  readonly close?: CloseOptions | false | undefined
}

export interface HoldfastModuleOptions extends HoldfastOfModule {
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
  readonly useFactory: (...injected: any[]) => HoldfastOfModule | Promise<HoldfastOfModule>
}

const OF_MODULE: readonly (keyof HoldfastOfModule)[] = ['url', 'options', 'holdfast', 'close']
const NAMED: readonly (keyof HoldfastModuleOptions)[] = [...OF_MODULE, 'name']
const ASYNC: readonly (keyof HoldfastModuleAsyncOptions)[] = ['name', 'imports', 'inject', 'useFactory']

/** Gives every module of the application its locks, and closes them before the application waits for its requests. */
export class HoldfastModule {
  static {
    Module({})(HoldfastModule)
  }

  static forRoot(options: HoldfastModuleOptions): DynamicModule {
    checkOptions(options, NAMED, 'url')
    const { name, ...given } = options
    checkGiven(given)
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
  const providers: Provider[] = [
    { provide: source, inject: inject ?? [], useFactory },
    { provide: token, inject: [source], useFactory: holdfastOf },
    {
      provide: Shutdown,
      inject: [token, source],
      useFactory: (holdfast: Holdfast, { close = {} }: HoldfastOfModule) => new Shutdown(holdfast, close),
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

async function holdfastOf(given: HoldfastOfModule): Promise<Holdfast> {
  checkOptions(given, OF_MODULE, 'url')
  checkGiven(given)
  const { url, options, holdfast } = given
  return holdfast ?? open(url ?? '', options)
}

function checkGiven({ url, options, holdfast, close = {} }: HoldfastOfModule): void {
  if ((url === undefined) === (holdfast === undefined))
    throw new InvalidArgumentError("give one of url and holdfast: { url: 'redis://localhost' }", {
      argument: 'url',
    })
  if (holdfast !== undefined && !(holdfast instanceof Holdfast))
    throw new InvalidArgumentError('holdfast must be a Holdfast: new Holdfast(store)', {
      argument: 'holdfast',
    })
  if (holdfast !== undefined && options !== undefined)
    throw new InvalidArgumentError('options are for the url: give them to new Holdfast(store, options)', {
      argument: 'options',
    })
  if (close === false) return
  checkOptions(close, OPTIONS.close, 'drain')
  checkClose(close)
}

/** Before the server waits for its requests: those that hold a lock are told, and those that wait for one turned away. */
class Shutdown implements BeforeApplicationShutdown {
  private readonly holdfast: Holdfast
  private readonly options: CloseOptions | false

  constructor(holdfast: Holdfast, options: CloseOptions | false) {
    this.holdfast = holdfast
    this.options = options
  }

  async beforeApplicationShutdown(): Promise<void> {
    if (this.options === false) return
    const { cutShort, leftToExpire } = await this.holdfast.close(this.options)
    const log = new Logger('Holdfast')
    if (cutShort.length > 0) log.warn(`Still running, their locks are gone: ${cutShort.join(', ')}`)
    if (leftToExpire.length > 0)
      log.warn(
        `The store did not answer; these end by themselves: ${leftToExpire.map(({ name }) => name).join(', ')}`,
      )
  }
}
