import { SHORT_WAIT } from './evidence.ts'
import type { Scene } from './scene.ts'

/** Between two answers to the lab itself, where nothing is wrong. */
const ANSWERED_MS = 300

/** Whether anybody notices something from now on: a call that fails, a lease that is lost, a question without an answer. */
export function signsSince({ errors, diary, onlooker }: Scene): () => boolean {
  const failures = (): number => errors.filter(({ call }) => call !== SHORT_WAIT).length
  const before = { errors: failures(), events: diary.history.length, looks: onlooker.looks.length }
  const began = process.hrtime.bigint()
  return () => {
    const answers = [
      began,
      ...onlooker.looks.slice(before.looks).map(({ to }) => to),
      process.hrtime.bigint(),
    ]
    const longest = Math.max(
      ...answers.slice(1).map((at, index) => Number(at - (answers[index] ?? at)) / 1e6),
    )
    const lost = diary.history.slice(before.events).some(({ kind }) => kind === 'lost')
    return failures() > before.errors || lost || longest > ANSWERED_MS
  }
}
