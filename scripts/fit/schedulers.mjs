// Each program of the guide on schedulers, twice: of all their ticks and jobs one runs in each second.
import { spawn } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'

import { postgres, redis } from '../services.mjs'
import { programOf } from './app.mjs'

/** Puts more jobs into the queue than are to be run. */
const CROWDS = {
  bullmq: `
import { Queue } from 'bullmq'
const queue = new Queue('report', { connection: { url: process.env.QUEUE } })
const put = () => queue.add('report', {})
`,
  'pg-boss': `
import PgBoss from 'pg-boss'
const boss = new PgBoss(process.env.QUEUE)
await boss.start()
const put = () => boss.send('report', {})
`,
  agenda: `
import { PostgresBackend } from '@agendajs/postgres-backend'
import { Agenda } from 'agenda'
const agenda = new Agenda({ backend: new PostgresBackend({ connectionString: process.env.QUEUE }) })
await agenda.ready
const put = () => agenda.now('report', {})
`,
}
const EVERY_TENTH = `
setInterval(() => put().then(() => console.log('put'), (error) => console.error(error)), 100)
`
const NAMES = ['croner', 'node-cron', ...Object.keys(CROWDS)]
/** From the first report on. */
const FOR_MS = 4000
const PATIENCE_MS = 60_000

export function schedulerChecks({ full }) {
  return {
    [`Schedulers: ${NAMES.join(', ')}, each in two processes`]: async () => {
      for (const file of ['report', ...NAMES])
        full.files({ [`schedulers/${file}.mjs`]: programOf('schedulers.md', `${file}.mjs`) })
      for (const [name, crowd] of Object.entries(CROWDS))
        full.files({ [`schedulers/crowd-${name}.mjs`]: crowd + EVERY_TENTH })
      const [locks, database] = await Promise.all([redis(), postgres()])
      try {
        const outcomes = await Promise.allSettled(
          NAMES.map((name) =>
            tryOut(name, full.path('schedulers'), {
              LOCKS: `${locks.url}?prefix=${name}`,
              QUEUE: name === 'bullmq' ? locks.url : database.url,
            }),
          ),
        )
        const failures = outcomes.flatMap(({ reason }) => (reason === undefined ? [] : [reason.message]))
        if (failures.length > 0) throw new Error(failures.join('\n'))
      } finally {
        await Promise.all([locks.stop(), database.stop()])
      }
    },
  }
}

async function tryOut(name, cwd, env) {
  const one = start(`${name}.mjs`, cwd, env)
  // Not at once: both would make the queue's tables.
  await Promise.race([one.reported, setTimeout(1000)])
  const all = [one, start(`${name}.mjs`, cwd, env)]
  const programs = [...all]
  if (name in CROWDS) programs.push(start(`crowd-${name}.mjs`, cwd, env))
  try {
    await Promise.race([...all.map(({ reported }) => reported), setTimeout(PATIENCE_MS)])
    await setTimeout(FOR_MS)
  } finally {
    for (const { child } of programs) child.kill('SIGTERM')
    await Promise.all(programs.map(({ ended }) => ended))
  }
  const said = all.map(({ said }) => said()).join('')
  const [, , crowd] = programs
  const put = crowd?.said().match(/put/g)?.length ?? Infinity
  const errors = programs.map(({ complaints }) => complaints()).join('')
  // Tokens are microseconds, about.
  const runs = [...said.matchAll(/^report (\d+)$/gm)]
    .map(([, token]) => Number(token) / 1000)
    .sort((a, b) => a - b)
  const pauses = runs.slice(1).map((at, index) => Math.round(at - runs[index]))
  if (runs.length < 2 || Math.min(...pauses) < 850 || put < 2 * runs.length)
    throw new Error(
      `${name}: ${runs.length} runs of ${put} jobs, with so many ms between them: ${pauses.join()}\n${errors}`,
    )
}

function start(file, cwd, env) {
  const child = spawn(process.execPath, [file], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const tooLate = globalThis.setTimeout(() => child.kill('SIGKILL'), 2 * PATIENCE_MS)
  let [said, complaints] = ['', '']
  const ended = new Promise((resolve) => child.once('exit', resolve)).finally(() => clearTimeout(tooLate))
  const reported = new Promise((resolve) => {
    child.stdout.on('data', (text) => {
      said += text
      if (said.includes('report')) resolve()
    })
    void ended.then(resolve)
  })
  child.stderr.on('data', (text) => (complaints += text))
  return { child, ended, reported, said: () => said, complaints: () => complaints }
}
