import { stalledIn } from './checks/progress.ts'
import { Times } from './in-order.ts'
import { SHORT_WAIT } from './evidence.ts'
import type { Scene } from './scene.ts'
import { since } from './timeline.ts'

/** Between two answers to the lab itself, where nothing is wrong. */
const ANSWERED_MS = 300

/**
 * Whether anybody notices something from now on: a call that fails, a lease that is lost, a question without an answer. While a
 * process is given no processor nothing is answered either, and that is no sign.
 */
export function signsSince({
  errors,
  diary,
  onlooker,
}: Pick<Scene, 'errors' | 'diary' | 'onlooker'>): () => boolean {
  const failures = (): number => errors.filter(({ call }) => call !== SHORT_WAIT).length
  const before = { errors: failures(), events: diary.history.length, looks: onlooker.looks.length }
  const began = diary.now()
  return () => {
    const answers = onlooker.looks.slice(before.looks).map(({ to }) => since(diary.began, to))
    const ends = [...answers, diary.now()]
    const longest = Math.max(
      ...ends.map((to, index) => {
        const from = ends[index - 1] ?? began
        return to - from - stalledIn(new Times(onlooker.stalls), { from, to })
      }),
    )
    const lost = diary.history.slice(before.events).some(({ kind }) => kind === 'lost')
    return failures() > before.errors || lost || longest > ANSWERED_MS
  }
}
