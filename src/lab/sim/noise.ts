import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import { events } from '../../runtime/events.ts'

/** What the platform says about code that runs in the background. */
export interface EventRecorder {
  readonly rejections: readonly unknown[]
  readonly warnings: readonly string[]
  stop(): void
}

export interface EarOptions {
  /** Whether somebody listens to what happens to locks, as a program with metrics does. */
  readonly locks?: 'heard' | 'unheard'
  /** False: warnings are expected, and not for people. */
  readonly print?: boolean
}

/** Listens for rejections that nobody handles, and for warnings, until it is told to stop. */
export function listenForNoise({ locks = 'heard', print = true }: EarOptions = {}): EventRecorder {
  const rejections: unknown[] = []
  const warnings: string[] = []
  const onRejection = (reason: unknown): void => void rejections.push(reason)
  const onWarning = ({ name, message }: Error): void => {
    if (name !== 'ExperimentalWarning') warnings.push(`${name}: ${message}`)
  }
  const onEvent = (): void => undefined
  const heard = locks === 'heard' ? Object.keys(events).map((kind) => `holdfast:${kind}`) : []
  for (const one of heard) subscribe(one, onEvent)
  process.on('unhandledRejection', onRejection)
  // Node prints them by a listener of its own.
  const printers = print ? [] : process.listeners('warning')
  for (const one of printers) process.off('warning', one)
  process.on('warning', onWarning)
  return {
    rejections,
    warnings,
    stop() {
      for (const one of heard) unsubscribe(one, onEvent)
      process.off('unhandledRejection', onRejection)
      process.off('warning', onWarning)
      for (const one of printers) process.on('warning', one)
    },
  }
}
