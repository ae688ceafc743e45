import { spawn } from 'node:child_process'
import { once } from 'node:events'

import { pathOf } from '../contestants/dist.mjs'
import { median, tail } from '../lib/stats.mjs'

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w13',
  title: '`holdfast run NAME -- true`, from start to end',
  about:
    "What a script pays for a lock: the command with nothing to do under it, and what it adds to `node -e ''`, which " +
    'is started in turns with it.',
  stores: ['redis', 'holdfast'],
  plans: {
    full: { rounds: 1, times: 15, warmUp: 0 },
    quick: { rounds: 1, times: 3, warmUp: 0, stores: [] },
  },
  variants: () => [{ id: 'run', label: '' }],
  takes: ({ family, waitingOnly, secondary }) => family === 'holdfast' && !waitingOnly && !secondary,
  headline: 'added',
  columns: ['added', 'p50', 'bare', 'max'],
  async round(stage, { store }, { times }) {
    const env = { ...process.env, HOLDFAST_URL: stage.endpoint.urls[store] }
    const command = [pathOf('cli/start.cjs'), 'run', stage.name(), '--', 'true']
    // The first of each reads its files from the disk.
    await started(command, env)
    await started(['-e', ''], env)
    const ours = []
    const bare = []
    for (let time = 0; time < times; time++) {
      ours.push(await started(command, env))
      bare.push(await started(['-e', ''], env))
    }
    const { p50, max } = tail(ours)
    return { run: { p50, max, bare: median(bare), added: p50 - median(bare) } }
  },
}

async function started(args, env) {
  const began = performance.now()
  const child = spawn(process.execPath, args, { env, stdio: 'ignore' })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${args.slice(1).join(' ')} ended with ${code}`)
  return performance.now() - began
}

export const steps = {}
