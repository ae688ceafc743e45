import type { Capabilities } from '../core/contract.ts'
import type { Abilities, Case, Need, Target } from './case.ts'
import { checkedStore } from './checked-store.ts'

/** Why a case does not apply; null if it does, or if that is only known once a store is open. */
export function whyNot(testCase: Case, target: Target, abilities: Abilities | undefined): string | null {
  const exception = target.exceptions?.[testCase.id]
  if (exception !== undefined) return exception
  const missing = testCase.needs.filter((need) => !has(need, target, abilities))
  return missing.length === 0 ? null : `needs ${missing.join(', ')}`
}

export async function abilitiesOf(
  target: Target,
): Promise<{ readonly capabilities: Capabilities; readonly abilities: Abilities }> {
  const opened = await target.createStore()
  const { capabilities, downgrade } = checkedStore(opened)
  await opened.close()
  const { queue, shared, permits, wakeups, fencing, reach } = capabilities
  const abilities = { queue, shared, permits, wakeups, fencing, reach }
  return { capabilities, abilities: { ...abilities, downgrade: shared && downgrade !== undefined } }
}

/** Cases were left out because of what the target said of its store: that has to be true. */
export function assertStated({ name, abilities }: Target, found: Abilities): void {
  if (abilities === undefined) return
  for (const ability of Object.keys(found) as (keyof Abilities)[]) {
    if (abilities[ability] === found[ability]) continue
    throw new Error(
      `The target "${name}" states ${ability}: ${abilities[ability]}, and its store has ${ability}: ${found[ability]}. Correct the target's abilities.`,
    )
  }
}

function has(need: Need, target: Target, abilities: Abilities | undefined): boolean {
  switch (need) {
    case 'proxy':
      return target.proxied !== undefined
    case 'restart':
      return target.restart !== undefined
    case 'processes':
      return target.module !== undefined && abilities?.reach !== 'process'
    default:
      return abilities === undefined || can(need, abilities)
  }
}

function can(need: Exclude<Need, 'proxy' | 'restart' | 'processes'>, abilities: Abilities): boolean {
  switch (need) {
    case 'queue':
    case 'shared':
    case 'permits':
    case 'downgrade':
      return abilities[need]
    case 'no downgrade':
      return !abilities.downgrade
    case 'no queue':
      return !abilities.queue
    case 'no shared':
      return !abilities.shared
    case 'no permits':
      return !abilities.permits
    case 'push':
      return abilities.wakeups === 'push'
    case 'monotonic tokens':
      return abilities.fencing === 'monotonic'
  }
}
