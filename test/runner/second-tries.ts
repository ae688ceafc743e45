import type { Reporter, TestCase, TestModule } from 'vitest/node'

/**
 * In CI a test on real servers that fails is run once more, for a machine may be busy. That hides nothing: what needed it is named
 * after everything else, to be mended.
 */
export class SecondTries implements Reporter {
  private readonly write: (text: string) => unknown

  constructor(write: (text: string) => unknown = (text) => process.stdout.write(text)) {
    this.write = write
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const needed = modules.flatMap((module) => [...module.children.allTests('passed')].flatMap(lineOf))
    if (needed.length === 0) return
    const [count, verb] = needed.length === 1 ? ['1 test', 'was'] : [`${needed.length} tests`, 'were']
    const head = `!!! ${count} failed at first and ${verb} only good when tried again: mend what depends on luck`
    this.write(['', head, ...needed, ''].join('\n'))
  }
}

function lineOf(test: TestCase): string[] {
  const tries = 1 + (test.diagnostic()?.retryCount ?? 0)
  if (tries === 1) return []
  // A test that came through keeps what its earlier tries died of.
  const [error] = test.result().errors ?? []
  const why = error === undefined ? '' : `\n      ${error.message.split('\n')[0]}`
  return [`!!!   ${test.module.relativeModuleId} > ${test.fullName} (try ${tries})${why}`]
}
