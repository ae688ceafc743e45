import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { Holdfast } from '../../src/index.ts'
import { healthOf } from '../../src/locks/health.ts'
import { hashToken } from '../../src/server/index.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { afterwards, serve, temporaryFolder } from './helpers.ts'

const TOKEN = 'sellers-'.padEnd(30, 'x')

function program(url: string, token: string): Holdfast {
  const holdfast = new Holdfast(holdfastStore(url, { token }), { closeStore: true })
  afterwards(() => holdfast.close())
  return holdfast
}

it.each(['acquire', 'acquire,read'])(
  'is up for a program whose token is for its own names: %s',
  async (rights) => {
    const tokensFile = join(temporaryFolder(), 'tokens')
    writeFileSync(tokensFile, `sellers ${hashToken(TOKEN)} ${rights} train:\n`, { mode: 0o600 })
    const { url } = await serve({ tokensFile })
    const holdfast = program(url, TOKEN)
    await holdfast.mutex('train:1').run(() => {})
    expect(await healthOf(holdfast)).toEqual({ status: 'up' })
    // Whom the server does not know gets no lock there.
    expect(await healthOf(program(url, `${TOKEN}y`))).toEqual({ status: 'down', code: 'STORE_UNAVAILABLE' })
  },
)
