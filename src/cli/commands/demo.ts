import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
const options = {} as const
const demo: Command = command({ spec: { name: 'demo', usage: '', summary: 'x', options, words: [0, 0], examples: [] }, run: () => Promise.resolve(0) })
export default demo
