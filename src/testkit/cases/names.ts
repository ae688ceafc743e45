import assert from 'node:assert/strict'

import { MAX_NAME_BYTES } from '../../core/arguments.ts'
import type { Case } from '../case.ts'
import { Client, openClients } from './client.ts'

/** Names that are allowed, and that something on the way to a backend may read as more than a name. */
const odd: readonly string[] = [
  '__proto__',
  'constructor',
  '.',
  '..',
  '/',
  '../../etc',
  'a/b//c/',
  ' ',
  ' leading and trailing ',
  '{}',
  '{a}b',
  'a{b',
  '}{',
  '*',
  '[a-z]?',
  '%s%20_',
  `'; DROP TABLE locks; --`,
  '"quoted" \\ backslash `tick`',
  '$1 ${x}',
  'null',
  '0',
  'get x 0 0 1',
  'ключ-鍵-🔑',
  'e\u0301',
  '\u00e9',
  '\u202eright to left',
  '\u00a0',
]

/** Names that a backend may take for one another: by case, by padding, by normalisation, by cutting. */
const alike: readonly string[] = [
  'a',
  'A',
  'a ',
  ' a',
  'a/',
  '/a',
  'a:',
  'a#',
  'ä',
  'a\u0308',
  'Å',
  '\u212b',
  'ß',
  'ss',
]

/** Names as long as they may be, which differ in their last bytes only. */
function longest(base: string): readonly string[] {
  const fill = (text: string, bytes: number): string => text.repeat(bytes / Buffer.byteLength(text))
  const room = MAX_NAME_BYTES - Buffer.byteLength(base)
  return [
    `${base}${fill('x', room)}`,
    `${base}${fill('x', room - 1)}y`,
    `${base}${fill('x', room - 1)}`,
    `${base}${fill('x', room % 4)}${fill('🔑', room - (room % 4))}`,
  ]
}

export const names: readonly Case[] = [
  {
    id: 'names/odd',
    title: 'a name may be any text: it is locked and shown as it is',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      for (const tail of odd) {
        for (const name of [tail, `${ctx.name()}${tail}`]) {
          const request = a.request(name)
          await a.take(request)
          await b.findBusy(name)
          const info = await b.inspect(name)
          assert.deepEqual([info.name, info.holders.length], [name, 1], JSON.stringify(name))
          assert.equal(await a.release(request), 'released', JSON.stringify(name))
        }
      }
    },
  },
  {
    id: 'names/alike',
    title: 'names that look alike are different locks',
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      const base = ctx.name()
      const tails = [...new Set(alike.flatMap((tail) => [`/${tail}`, `/${tail}/`]))]
      for (const tail of tails) await a.take(a.request(`${base}${tail}`))
      for (const tail of tails) {
        await b.findBusy(`${base}${tail}`)
        assert.equal((await b.inspect(`${base}${tail}`)).holders.length, 1)
      }
    },
  },
  {
    id: 'names/long',
    title: `a name may have ${MAX_NAME_BYTES} bytes, and every one of them counts`,
    needs: [],
    async run(ctx) {
      const [a, b] = await openClients(ctx)
      for (const name of longest(ctx.name())) {
        assert.ok(Buffer.byteLength(name) <= MAX_NAME_BYTES)
        await a.take(a.request(name))
        await b.findBusy(name)
      }
    },
  },
  {
    id: 'list/names',
    title: 'names are listed as they are, however odd, alike or long',
    needs: [],
    async run(ctx) {
      const a = await Client.open(ctx)
      const base = ctx.name()
      const all = [...new Set([...odd, ...alike])].map((tail) => `${base}${tail}`).concat(longest(`${base}/`))
      for (const name of all) await a.take(a.request(name))
      assert.deepEqual([...(await a.list(base))].sort(), [...all].sort())
    },
  },
]
