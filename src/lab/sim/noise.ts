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
  process.on('unhandledRejection', onRejection)
  process.on('warning', onWarning)
  return {
    rejections,
    warnings,
    stop() {
      process.off('unhandledRejection', onRejection)
      process.off('warning', onWarning)
    },
  }
}
