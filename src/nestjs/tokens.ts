import { Inject } from '@nestjs/common'
import type { InjectionToken } from '@nestjs/common'

import { checkName } from '../core/arguments.ts'
import { Holdfast } from '../locks/holdfast.ts'

/** What a Holdfast is provided by: the class itself, or for one with a name a text. For `overrideProvider` and `inject`. */
export function holdfastToken(name?: string): InjectionToken {
  if (name === undefined) return Holdfast
  checkName(name)
  return `Holdfast ${name}`
}

/** Injects the Holdfast with a name. The one without needs only its type: `constructor(locks: Holdfast)`. */
export function InjectHoldfast(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(holdfastToken(name)) as ParameterDecorator & PropertyDecorator
}
