import { Inject, Module, Scope } from '@nestjs/common'
import type { DynamicModule, INestApplicationContext, Provider } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import {
  currentLease,
  HoldfastHealth,
  HoldfastModule,
  holdfastToken,
  InjectHoldfast,
  Locked,
  OnceInFleet,
} from 'holdfast/nestjs'
import { TestLocks } from 'holdfast/testing'

let locks: TestLocks
const apps: INestApplicationContext[] = []
beforeEach(() => void (locks = new TestLocks()))
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close()
  await locks.close()
})

async function start(providers: Provider[], ...modules: DynamicModule[]): Promise<INestApplicationContext> {
  class App {}
  const imports = modules.length > 0 ? modules : [HoldfastModule.forRoot({ holdfast: locks.holdfast })]
  Module({ imports, providers })(App)
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false })
  apps.push(app)
  return app
}

/** What `@decorator` does: these tests are not compiled with TypeScript's decorators. The guide's application is. */
function decorate<F>(
  of: { prototype: object },
  key: string,
  ...decorators: ((target: object, key: string, descriptor: TypedPropertyDescriptor<F>) => void)[]
): void {
  const descriptor = Object.getOwnPropertyDescriptor(of.prototype, key) as TypedPropertyDescriptor<F>
  for (const decorator of decorators.toReversed()) decorator(of.prototype, key, descriptor)
  Object.defineProperty(of.prototype, key, descriptor)
}

describe('the module', () => {
  it('provides a Holdfast everywhere, by its class', async () => {
    class Inner {}
    Module({})(Inner)
    class Trains {
      readonly locks: Holdfast
      constructor(given: Holdfast) {
        this.locks = given
      }
    }
    Inject(Holdfast)(Trains, undefined as unknown as string, 0)
    const app = await start([Trains])
    expect(app.get(Trains).locks).toBe(locks.holdfast)
  })

  it('opens a URL, and closes what it opened', async () => {
    const app = await start([], HoldfastModule.forRoot({ url: 'memory:', options: { ttl: 5000 } }))
    const holdfast = app.get(Holdfast)
    expect(await holdfast.mutex('train').run(() => 'sold')).toBe('sold')
    await app.close()
    expect(holdfast.closed).toBe(true)
  })

  it('takes its options from what is injected, and has several by name', async () => {
    class Config {
      readonly url = 'memory:'
    }
    class Settings {}
    Module({ providers: [Config], exports: [Config] })(Settings)
    class Audit {
      readonly locks: Holdfast
      constructor(given: Holdfast) {
        this.locks = given
      }
    }
    InjectHoldfast('audit')(Audit, undefined, 0)
    const audit = HoldfastModule.forRootAsync({
      name: 'audit',
      imports: [Settings],
      inject: [Config],
      useFactory: async ({ url }: Config) => ({ url }),
    })
    const app = await start([Audit], HoldfastModule.forRoot({ holdfast: locks.holdfast }), audit)
    expect(app.get(Audit).locks).toBe(app.get(holdfastToken('audit')))
    expect(app.get(Audit).locks).not.toBe(app.get(Holdfast))
    const [one, other] = [app.get(Holdfast), app.get<Holdfast>(holdfastToken('audit'))]
    await app.close()
    expect([one.closed, other.closed]).toEqual([true, true])
  })

  it.each([
    [{}, 'give one of url and holdfast'],
    [{ url: 'memory:', holdfast: new Holdfast(memoryStore()) }, 'give one of url and holdfast'],
    [{ holdfast: memoryStore() }, 'holdfast must be a Holdfast'],
    [{ holdfast: new Holdfast(memoryStore()), options: {} }, 'options are for the url'],
    [{ ulr: 'memory:' }, 'Did you mean "url"?'],
    [{ url: 'memory:', close: { drian: 5 } }, 'Did you mean "drain"?'],
    [{ url: 'memory:', close: { drain: -1 } }, 'drain must be between'],
    [{ url: 'memory:', name: '' }, 'name must not be empty'],
  ])('refuses %j', (options, message) => {
    expect(() => HoldfastModule.forRoot(options as object)).toThrow(message)
  })

  it('refuses what a factory gives in the same way, and one that is none', async () => {
    const useFactory = (): object => ({ ulr: 'memory:' })
    await expect(start([], HoldfastModule.forRootAsync({ useFactory }))).rejects.toThrow(
      'Did you mean "url"?',
    )
    expect(() => HoldfastModule.forRootAsync({} as never)).toThrow('useFactory must be a function')
  })

  it('does not start when the URL cannot be opened', async () => {
    await expect(start([], HoldfastModule.forRoot({ url: 'nothing://here' }))).rejects.toThrow('nothing')
  })
})

class Orders {
  async pay(id: string, amount: number): Promise<string> {
    locks.assertHeld(`order:${id}`)
    return `${amount} ${currentLease().name}`
  }
  async nap(): Promise<Error | undefined> {
    const { signal } = currentLease()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return signal.reason as Error
  }
  async nameless(_id?: string): Promise<void> {}
}
decorate<Orders['pay']>(
  Orders,
  'pay',
  Locked((id: string) => `order:${id}`, { wait: 2000 }),
)
decorate<Orders['nap']>(Orders, 'nap', Locked('nap'))
decorate<Orders['nameless']>(
  Orders,
  'nameless',
  Locked((id?: string) => id as string),
)

describe('@Locked', () => {
  it('runs the method under the lock that its arguments name, and gives it its lease', async () => {
    const app = await start([Orders])
    expect(await app.get(Orders).pay('7', 20)).toBe('20 order:7')
    expect(locks.history).toMatchObject([{ name: 'order:7', state: 'released' }])
    expect(() => currentLease()).toThrow('inside of a @Locked method')
  })

  it('waits as its options say', async () => {
    const app = await start([Orders])
    await locks.others.mutex('order:7').acquire()
    await expect(locks.until(app.get(Orders).pay('7', 20))).rejects.toThrow(
      expect.objectContaining({ code: 'LOCK_TIMEOUT', waited: 2000 }),
    )
  })

  it('rejects when the name is none', async () => {
    const app = await start([Orders])
    await expect(app.get(Orders).nameless()).rejects.toThrow('name must be a string; got undefined')
  })

  it('holds in a class that extends the one with the decorator', async () => {
    class More extends Orders {
      override async pay(id: string, amount: number): Promise<string> {
        return `more than ${await super.pay(id, amount)}`
      }
    }
    const app = await start([More])
    expect(await app.get(More).pay('7', 20)).toBe('more than 20 order:7')
  })

  it('holds in objects that are made anew for each request', async () => {
    const app = await start([{ provide: Orders, useClass: Orders, scope: Scope.REQUEST }])
    const [one, other] = [await app.resolve(Orders), await app.resolve(Orders)]
    expect(one).not.toBe(other)
    expect(await Promise.all([one.pay('7', 20), other.pay('7', 30)])).toEqual(['20 order:7', '30 order:7'])
  })

  it('says so when nobody gave the object its locks', async () => {
    await expect(new Orders().pay('7', 20)).rejects.toThrow('@Locked of pay has no locks')
  })

  it('keeps what other decorators noted, above it or below', () => {
    const note = (
      target: object,
      key: string,
      { value }: TypedPropertyDescriptor<() => Promise<void>>,
    ): void => Reflect.defineMetadata('noted', key, value ?? target)
    class Above {
      async run(): Promise<void> {}
    }
    class Below {
      async run(): Promise<void> {}
    }
    decorate<Above['run']>(Above, 'run', note, Locked('a'))
    decorate<Below['run']>(Below, 'run', Locked('a'), note)
    for (const { prototype } of [Above, Below]) {
      const run = Object.getOwnPropertyDescriptor(prototype, 'run')?.value as (() => void) | undefined
      expect(run?.name).toBe('run')
      expect(run && Reflect.getMetadata('noted', run)).toBe('run')
    }
  })

  it('has its options looked at when the application starts', async () => {
    class Wrong {
      async run(): Promise<void> {}
    }
    decorate<Wrong['run']>(
      Wrong,
      'run',
      Locked((id?: string) => String(id), { wiat: 5 } as object),
    )
    await expect(start([Wrong])).rejects.toThrow('Did you mean "wait"?')
    class Static {
      static async run(): Promise<void> {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Static, 'run')
    expect(() => Locked('a')(Static, 'run', descriptor as never)).toThrow('which is not static')
    expect(() => Locked('')).toThrow('name must not be empty')
  })

  it('has types that know the arguments, and refuses methods that wait for nothing', () => {
    type Of<F> = TypedPropertyDescriptor<F>
    const pay = {} as Of<(order: { id: string; sum: number }, by: string) => Promise<void>>
    const check = (): void => {
      Locked((order: { id: string }) => order.id)({}, 'pay', pay)
      Locked('all')({}, 'pay', pay)
      // @ts-expect-error -- it has no such argument
      Locked((order: { number: number }) => String(order.number))({}, 'pay', pay)
      // @ts-expect-error -- nothing is waited for
      Locked('all')({}, 'pay', {} as Of<() => string>)
    }
    expect(check).toBeTypeOf('function')
  })
})

describe('@OnceInFleet', () => {
  let ran = 0
  class Reports {
    async write({ token }: { token: bigint }): Promise<string> {
      return `${++ran} ${typeof token}`
    }
  }
  decorate<Reports['write']>(Reports, 'write', OnceInFleet('report', { every: 60_000 }))
  const write = (app: INestApplicationContext): unknown => (app.get(Reports) as { write(): unknown }).write()

  it('runs the job in one replica, once per period', async () => {
    ran = 0
    const one = await start([Reports])
    const other = await start([Reports], HoldfastModule.forRoot({ holdfast: locks.others }))
    expect(await Promise.all([write(one), write(other), write(one)])).toEqual([
      '1 bigint',
      undefined,
      undefined,
    ])
    await locks.advance(60_000)
    expect(await write(other)).toBe('2 bigint')
  })

  it('does nothing any more when the application is being closed', async () => {
    ran = 0
    const app = await start([Reports])
    await app.close()
    expect(await write(app)).toBeUndefined()
    expect(ran).toBe(0)
  })

  it('has its options looked at when the application starts', async () => {
    class Wrong {
      async run(): Promise<void> {}
    }
    decorate<Wrong['run']>(Wrong, 'run', OnceInFleet('report', { every: 0 }))
    await expect(start([Wrong])).rejects.toThrow('every must be between')
  })
})

describe('the end', () => {
  it('drains: what runs is told, and waited for', async () => {
    const app = await start([Orders])
    const nap = app.get(Orders).nap()
    await locks.advance(0)
    await locks.until(app.close())
    expect(await nap).toMatchObject({ code: 'CLOSED' })
    expect(locks.history).toMatchObject([{ name: 'nap', state: 'released' }])
  })

  it('leaves a Holdfast open that is somebody else’s to close', async () => {
    const app = await start([], HoldfastModule.forRoot({ holdfast: locks.holdfast, close: false }))
    await app.close()
    expect(locks.holdfast.closed).toBe(false)
  })
})

describe('health', () => {
  it('is up while the store answers and the locks are open', async () => {
    const app = await start([])
    const health = app.get(HoldfastHealth)
    expect(await health.check()).toEqual({ holdfast: { status: 'up' } })
    const mended = locks.down()
    expect(await health.check('locks')).toEqual({ locks: { status: 'down', code: 'STORE_UNAVAILABLE' } })
    mended()
    expect(await health.check('locks')).toEqual({ locks: { status: 'up' } })
    await app.close()
    expect(await health.check('locks')).toEqual({ locks: { status: 'down', code: 'CLOSED' } })
  })
})
