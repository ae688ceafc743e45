// Faults on real servers: every store under every fault that this machine allows.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { NEMESES, revive, runCell, settingsOf } from '../dist/lab/live/index.js'
import { openStore } from '../dist/open.js'
import { nodeOf } from '../scripts/node-matrix.mjs'
import { hasStage, STAGES, startStage } from './stages.mjs'

const MAIN = fileURLToPath(new URL('main.mjs', import.meta.url))
const CLIENTS = 4
const ROUNDS = 2
const CAN_SQLITE = process.getBuiltinModule('node:sqlite') !== undefined

/** A file has neither connections nor a server. Its clock is the machine's own, which the lab does not touch. */
const FILE_FAULTS = ['none', 'kill', 'pause', 'block', 'clock-jump']

function applies(store, kind) {
  const { only = store === 'sqlite' ? FILE_FAULTS : undefined, leaveOut = [] } = STAGES[store] ?? {}
  return only?.includes(kind) ?? !leaveOut.includes(kind)
}

/** Started when the first of a store's runs asks for it, and stopped when another store's turn has come. */
export class OpenStage {
  #store
  #open

  async get(store) {
    if (this.#store === store) return this.#open
    await this.close()
    this.#store = store
    this.#open = await (store === 'sqlite' ? sqliteStage() : startStage(store))
    const opened = await openStore(this.#open.url)
    const { kind, capabilities } = opened
    this.#open.settings = settingsOf(kind, capabilities)
    await opened.close()
    return this.#open
  }

  async close() {
    await this.#open?.stop()
    this.#open = undefined
    this.#store = undefined
  }
}

/** A file and no server: what can be hurt are the clients. */
async function sqliteStage() {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-lab-'))
  return { url: `sqlite:${join(dir, 'locks.db')}`, stop: async () => rmSync(dir, { recursive: true }) }
}

export function faultTasks({ seed, stages }) {
  const stores = [...Object.keys(STAGES), 'sqlite']
  return stores.flatMap((store) =>
    NEMESES.filter(({ kind }) => applies(store, kind)).map((nemesis) => ({
      id: `live/${store}/${nemesis.kind}`,
      title: `${store}: ${nemesis.what}`,
      run: () => cell(stages, store, nemesis, seed),
    })),
  )
}

async function cell(stages, store, nemesis, seed) {
  const nowhere = { store, url: '', ttl: 0, clients: 0, names: ['none'] }
  if (store === 'sqlite' && !CAN_SQLITE) return onNewerNode(`live/sqlite/${nemesis.kind}`, seed)
  if (store !== 'sqlite' && !hasStage(store)) {
    const missing = () => `there is no ${store} on this machine`
    return runCell(nowhere, [{ ...nemesis, missing }], { seed })
  }
  const { settings, stop: _, ...open } = await stages.get(store)
  const { kind, ttl = settings.ttl } = nemesis
  const stage = { store, clients: CLIENTS, names: [`lab-${seed}:${kind}`], ...open, ...settings, ttl }
  const command = `npm run lab -- --exactly 'live/${store}/${kind}' --seed ${seed}`
  return runCell(stage, [nemesis], { seed, rounds: ROUNDS, command })
}

/** This Node has no SQLite; a newer one runs the same lab. */
function onNewerNode(id, seed) {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-lab-'))
  try {
    const file = join(dir, 'record.json')
    const args = [MAIN, '--exactly', id, '--seed', String(seed), '--json', file]
    try {
      execFileSync(nodeOf('22'), args, { stdio: 'ignore' })
    } catch (error) {
      // 1 says that something was not as expected: the record says what.
      if (error.status !== 1) throw error
    }
    return JSON.parse(readFileSync(file, 'utf8')).map((record) => ({
      ...record,
      ...(record.evidence && { evidence: revive(record.evidence) }),
    }))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
