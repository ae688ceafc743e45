// Faults on real servers: every store under every fault that this machine allows.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

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

/** `wanted`: which of them are made. The last one of a store's closes what it was made on. */
export function faultTasks({ seed, wanted }) {
  const stores = [...Object.keys(STAGES), 'sqlite']
  return stores.flatMap((store) => {
    const stage = new OpenStage()
    const kinds = NEMESES.filter(({ kind }) => applies(store, kind))
    const tasks = kinds.map((nemesis) => ({
      id: `live/${store}/${nemesis.kind}`,
      title: `${store}: ${nemesis.what}`,
      lane: store,
      run: () => cell(stage, store, nemesis, seed),
    }))
    const own = tasks.filter(wanted)
    const closing = async (run) => {
      try {
        return await run()
      } finally {
        await stage.close()
      }
    }
    return own.map((task, index) =>
      index < own.length - 1 ? task : { ...task, run: () => closing(task.run), close: () => stage.close() },
    )
  })
}

async function cell(stage, store, nemesis, seed) {
  const nowhere = { store, url: '', ttl: 0, clients: 0, names: ['none'] }
  if (store === 'sqlite' && !CAN_SQLITE) return onNewerNode(`live/sqlite/${nemesis.kind}`, seed)
  if (store !== 'sqlite' && !hasStage(store)) {
    const missing = () => `there is no ${store} on this machine`
    return runCell(nowhere, [{ ...nemesis, missing }], { seed })
  }
  const { settings, stop: _, ...open } = await stage.get(store)
  const { kind, ttl = settings.ttl } = nemesis
  const scene = { store, clients: CLIENTS, names: [`lab-${seed}:${kind}`], ...open, ...settings, ttl }
  const command = `npm run lab -- --exactly 'live/${store}/${kind}' --seed ${seed}`
  return runCell(scene, [nemesis], { seed, rounds: ROUNDS, command })
}

/** This Node has no SQLite; a newer one runs the same lab. */
async function onNewerNode(id, seed) {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-lab-'))
  try {
    const file = join(dir, 'record.json')
    const args = [MAIN, '--exactly', id, '--seed', String(seed), '--json', file]
    try {
      await promisify(execFile)(nodeOf('22'), args)
    } catch (error) {
      // 1 says that something was not as expected: the record says what. The others: it was told to end, as this lab was, and did in order.
      if (![1, 130, 143].includes(error.code)) throw error
    }
    return JSON.parse(readFileSync(file, 'utf8')).map((record) => ({
      ...record,
      ...(record.evidence && { evidence: revive(record.evidence) }),
    }))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
