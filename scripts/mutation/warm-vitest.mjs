// A vitest that stays, in a process of its own, inside a copy of the tree: told which mistake is on and which test files to run, it says what failed.
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'

import { createVitest } from 'vitest/node'

const vitest = await createVitest('test', {
  config: 'vitest.mutate.config.ts',
  watch: false,
  reporters: [{ onInit() {} }],
})
const specifications = await vitest.globTestSpecifications()
const byFile = new Map(specifications.map((each) => [each.moduleId, each]))

/** By its path, from the root of the copy or in full. */
function specificationOf(file) {
  const found = byFile.get(resolve(file))
  if (found === undefined) throw new Error(`There is no test file ${file}`)
  return found
}

async function run({ mutant, files, bail }) {
  writeFileSync('.mutant.json', JSON.stringify(mutant))
  vitest.config.bail = bail
  for (const project of vitest.projects) project.config.bail = bail
  const asked = files === undefined ? specifications : files.map(specificationOf)
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(asked, false)
  const ran = testModules.filter(({ moduleId }) => asked.some((each) => each.moduleId === moduleId))
  const failed = ran
    .filter((each) => each.state() === 'failed')
    .map((module) => {
      const [test] = module.children.allTests('failed')
      return `${module.relativeModuleId} > ${test?.fullName ?? 'does not load'}`
    })
  if (failed.length === 0 && unhandledErrors.length > 0)
    failed.push(`an error that nobody handled: ${String(unhandledErrors[0]?.message).split('\n')[0]}`)
  const late = ran
    .flatMap((module) => [...module.children.allTests('failed')])
    .every((test) => (test.result().errors ?? []).some(({ message }) => /timed out in/.test(message)))
  const took = ran.map((module) => {
    const { collectDuration, duration } = module.diagnostic()
    return [module.moduleId, Math.round(collectDuration + duration)]
  })
  return { failed, took, late: failed.length > 0 && late }
}

process.on('message', (message) => {
  run(message).then(
    (answer) => process.send(answer),
    // None of the tests' doing: the measurement itself does not work.
    (error) => process.send({ broken: error.stack }),
  )
})

process.send({ kind: 'ready', files: [...byFile.keys()] })
