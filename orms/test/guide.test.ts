import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { describe, expect, it } from 'vitest'

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const guide = readFileSync(at('../../docs/guides/orms.md'), 'utf8')

describe('the guide to ORMs', () => {
  it.each(readdirSync(at('../adapters')))('shows %s as it is tried', (file) => {
    const code = readFileSync(at(`../adapters/${file}`), 'utf8')
    expect(guide).toContain(`\`\`\`ts\n${code}\`\`\``)
  })
})
