import { events } from '../../runtime/events.ts'

/** What the platform says about code that runs in the background. */
export interface Ear {
  readonly rejections: readonly unknown[]
  readonly warnings: readonly string[]
  stop(): void
}

/** Listens for rejections that nobody handles, and for warnings, until it is told to stop. */
export function listenForNoise(): Ear {
  const rejections: unknown[] = []
  const warnings: string[] = []
  const onRejection = (reason: unknown): void => void rejections.push(reason)
  const onWarning = ({ name, message }: Error): void => {
    if (name !== 'ExperimentalWarning') warnings.push(`${name}: ${message}`)
  }
  // Somebody listens to what happens to locks, as a program with metrics does.
  const onEvent = (): void => undefined
  for (const one of Object.values(events)) one.subscribe(onEvent)
  process.on('unhandledRejection', onRejection)
  process.on('warning', onWarning)
  return {
    rejections,
    warnings,
    stop() {
      for (const one of Object.values(events)) one.unsubscribe(onEvent)
      process.off('unhandledRejection', onRejection)
      process.off('warning', onWarning)
    },
  }
}
