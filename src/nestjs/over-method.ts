import { Inject } from '@nestjs/common'

import { InvalidArgumentError } from '../core/errors.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import { holdfastToken } from './tokens.ts'

export type Method = (...args: unknown[]) => unknown

export interface Decoration {
  /** For messages. */
  readonly decorator: string
  /** The name of the Holdfast. */
  readonly holdfast: string | undefined
  /** What takes the place of the method of one object. Throws, when the application starts, if something is wrong with the options. */
  readonly make: (holdfast: Holdfast, body: Method) => Method
}

/** The part of reflect-metadata that Nest loads. */
interface Metadata {
  getMetadataKeys(target: object): unknown[]
  getMetadata(key: unknown, target: object): unknown
  defineMetadata(key: unknown, value: unknown, target: object): void
}

/** Puts something in the place of a method. Nest gives each object of the class its Holdfast, by a property of our own. */
export function overMethod(
  { decorator, holdfast, make }: Decoration,
  target: object,
  key: string | symbol,
  descriptor: PropertyDescriptor | undefined,
): void {
  const where = `@${decorator} of ${String(key)}`
  const original: unknown = descriptor?.value
  if (descriptor === undefined || typeof original !== 'function' || typeof target === 'function')
    throw new InvalidArgumentError(`${where} must stand before a method of a class, which is not static`, {
      argument: decorator,
    })
  const made = new WeakMap<object, Method>()
  const property = Symbol(where)
  Object.defineProperty(target, property, {
    set(this: object, given: Holdfast) {
      made.set(this, make(given, (original as Method).bind(this)))
    },
  })
  Inject(holdfastToken(holdfast))(target, property)

  const replaced = async function (this: object, ...args: unknown[]): Promise<unknown> {
    const method = made.get(this)
    if (method === undefined)
      throw new InvalidArgumentError(
        `${where} has no locks: the object was not made by Nest. Get it from a module, or Test.createTestingModule()`,
        { argument: decorator },
      )
    return method(...args)
  }
  Object.defineProperty(replaced, 'name', { value: original.name })
  // Of other decorators, which may stand below this one: a route, a schedule.
  const metadata = Reflect as unknown as Metadata
  for (const each of metadata.getMetadataKeys(original))
    metadata.defineMetadata(each, metadata.getMetadata(each, original), replaced)
  descriptor.value = replaced
}
