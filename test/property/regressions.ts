import type { LockRef, Program, Section, Step } from '../../src/lab/sim/programs/index.ts'

const READ: LockRef = { name: 'n', mode: 'read' }
const WRITE: LockRef = { name: 'n', mode: 'write' }

/** Programs that broke a promise once, shortened, and what it was. They keep it for good. */
export const regressions: readonly (readonly [string, Program])[] = [
  [
    'who waits for ever is not told that the time of another wait is over',
    program('direct', [
      task(0, 0, [run(mutex(), {}, [sleep(500)])]),
      task(0, 1, [run(mutex(), { forever: true })]),
      task(0, 1, [run(mutex(), { wait: 30 })]),
    ]),
  ],
  [
    'a try that is aborted lets who waits behind it in',
    program('calm', [task(0, 0, [taken(mutex(), 'try', { abort: 0.28 })]), task(0, 0, [run(mutex())])]),
  ],
  [
    'close reaches every lane of a name, also behind one that is idle',
    {
      ...program('direct', [
        task(0, 0, [run(permits({ renew: false }))]),
        task(0, 0, [taken(permits(), 'acquire', { permits: 2 })]),
        task(0, 0, [taken(permits(), 'try', {}, [sleep(8)])]),
        task(0, 0, [taken(permits(), 'try', { ttl: 450 })]),
      ]),
      closes: [{ process: 0, at: 2, options: { drain: 0 } }],
    },
  ],
  [
    'a writer that gave up keeps no reader out',
    program('direct', [
      task(0, 0, [run(READ, {}, [sleep(544)])]),
      task(0, 0, [run(WRITE, { wait: 34 })]),
      task(0, 18, [run(READ)]),
    ]),
  ],
  [
    'a nested lease keeps the lock when the outer one is given back',
    program('direct', [
      task(0, 0, [
        run(mutex(), {}, [
          { do: 'detach', steps: [taken(mutex({ reentrant: true }), 'acquire', {}, [sleep(3)])] },
        ]),
        run(mutex(), {}, [sleep(8)]),
      ]),
    ]),
  ],
  [
    'readers never refuse readers',
    program('direct', [task(0, 0, [taken(READ, 'try')]), task(0, 0, [run(READ, { wait: 0 }, [sleep(64)])])]),
  ],
  [
    'readers that are not renewed never refuse each other either',
    program('calm', [
      task(0, 58, [taken({ ...READ, renew: false }, 'try', { times: 6 }, [sleep(30)])]),
      task(0, 89, [taken({ ...READ, renew: false }, 'acquire', { times: 6 }, [sleep(64)])]),
    ]),
  ],
  [
    'readers of a process that never had to wait do not pass a writer of another',
    program('direct', [
      task(1, 80, [run(READ, { wait: 7 })]),
      task(1, 0, [run(READ, {}, [sleep(560)])]),
      task(2, 6, [run(WRITE)]),
    ]),
  ],
  [
    'a queue that forms before the answer “held” comes is not forgotten',
    {
      ...program('calm', [
        task(0, 0, [taken(READ, 'acquire', {}, [sleep(29)])]),
        task(0, 14, [run(READ, {}, [sleep(31)])]),
        task(0, 93, [taken(READ, 'try', { times: 6 }, [sleep(4)])]),
        task(0, 0, [taken(WRITE, 'acquire', { times: 2 }, [sleep(41)])]),
      ]),
      fair: 'strict',
    },
  ],
  [
    'the names of a set are known inside it',
    program('direct', [task(0, 0, [run(mutex(), { all: true }, [run(mutex())])])]),
  ],
  [
    'two keys on one stripe count once',
    program('direct', [
      task(0, 0, [
        {
          ...taken(mutex(), 'try'),
          all: true,
          locks: [mutex({ key: 'ann' }), mutex({ key: 'bob' })],
        },
      ]),
    ]),
  ],
  [
    'who comes when others wait through an outage is not told of it when it is over',
    {
      ...program('stormy', [
        task(0, 15, [taken(mutex(), 'acquire', { ttl: 450 })]),
        task(0, 0, [
          taken(mutex({ renew: false, ttl: 250 }), 'acquire', {}, [run(mutex())]),
          taken(mutex(), 'acquire', { wait: 18, ttl: 450 }),
        ]),
      ]),
      ttl: 300,
      fair: 'strict',
      faults: [
        { kind: 'loss', at: 213, process: 0, what: 'request', method: 'any', times: 4 },
        { kind: 'loss', at: 240, process: 0, what: 'reply', method: 'any', times: 3 },
      ],
    },
  ],
  [
    'a reader does not take over from another before the store has said whether a writer waits',
    program('calm', [
      task(0, 0, [{ do: 'inspect', name: 'n' }, run(WRITE)]),
      task(1, 0, [taken(READ, 'acquire', { wait: 0 }, [sleep(40), { do: 'detach', steps: [run(READ)] }])]),
    ]),
  ],
  [
    // Two that wait for each other: the set has "n" all the time, and nobody sees it. No promise was broken, the check was mistaken.
    'a writer behind another of its process, whose turn is over, goes behind the reader who came meanwhile',
    program('direct', [
      task(0, 0, [run({ ...WRITE, name: 'o' }, {}, [sleep(9), taken(WRITE, 'acquire')])]),
      task(0, 0, [run(WRITE, { all: true, locks: [WRITE, { ...WRITE, name: 'o' }] })]),
      task(0, 0, [run(READ, { times: 6 }, [sleep(138)])]),
    ]),
  ],
]

function mutex(more: Partial<LockRef> = {}): LockRef {
  return { name: 'n', mode: 'mutex', ...more }
}

function permits(more: Partial<LockRef> = {}): LockRef {
  return { name: 'n', mode: 'permits', capacity: 2, ...more }
}

function sleep(ms: number): Step {
  return { do: 'sleep', ms }
}

function run(lock: LockRef, options: Partial<Section> = {}, inside: readonly Step[] = []): Section {
  return taken(lock, 'run', options, inside)
}

function taken(
  lock: LockRef,
  how: Section['how'],
  options: Partial<Section> = {},
  inside: readonly Step[] = [],
): Section {
  const wait = how === 'try' ? {} : { wait: 4000 }
  return { do: 'lock', locks: [lock], how, times: 1, ...wait, inside, end: 'release', ...options }
}

function task(process: number, at: number, steps: readonly Step[]): Program['tasks'][number] {
  return { process, at, steps }
}

function program(world: Program['world'], tasks: Program['tasks']): Program {
  const processes = 1 + Math.max(...tasks.map(({ process }) => process))
  return { seed: 1, world, processes, ttl: 600, fair: 'turns', tasks, closes: [], faults: [] }
}
