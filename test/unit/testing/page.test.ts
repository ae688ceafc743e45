import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { expect, it } from 'vitest'

const here = fileURLToPath(new URL('.', import.meta.url))
const page = readFileSync(`${here}/../../../docs/guides/testing.md`, 'utf8')

it('the examples of the page are those of the tests beside this one', () => {
  const tests = readdirSync(`${here}/page`).map((name) => readFileSync(`${here}/page/${name}`, 'utf8'))
  const examples = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code)
  expect(examples.length).toBe(3)
  for (const example of examples) expect(tests).toContain(example)
})
