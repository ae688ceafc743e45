// Promises that a call makes and that no rival notices when they are broken. See lab/kill-matrix.mjs.
import { mutant } from './of-programs.mjs'

const LEASE = 'runtime/lease.js'
const CLOSING = 'runtime/closing.js'
const SET = 'locks/lock-set.js'
const HOLDFAST = 'locks/holdfast.js'

/** @type {import('../kill-matrix.mjs').Mutant[]} */
export const promiseMutants = [
  mutant(
    'max-hold-ignored',
    'P1: a lease is held beyond its `maxHold`',
    { file: LEASE, find: 'if (maxHold !== Infinity)', replace: 'if (maxHold < 0)' },
    'signal',
    30,
  ),
  mutant(
    'close-warns-nobody',
    'P2: who holds a lock does not hear that its Holdfast is being closed',
    { file: LEASE, find: 'this.warning = reason;', replace: 'return;' },
    'close',
    60,
  ),
  mutant(
    'drain-ignored',
    'P3: close() takes locks away before the drain is over',
    { file: CLOSING, find: 'if (release && drain === 0)', replace: 'if (release)' },
    'close',
    60,
  ),
  mutant(
    'cut-short-untold',
    'P4: close() does not say what it took away',
    { file: CLOSING, find: 'this.cutShort = namesOf(held.filter(({ users }) => users > 0));', replace: ';' },
    'close',
    200,
  ),
  mutant(
    'left-untold',
    'P5: close() does not say what it left to run out',
    { file: CLOSING, find: 'leftToExpire: latest(leftToExpire)', replace: 'leftToExpire: []' },
    'close',
    100,
  ),
  mutant(
    'set-in-any-order',
    'P6: several locks are taken in the order of the call, so that two may wait for each other',
    { file: SET, find: '(a.name < b.name ? -1 : 1)', replace: '0' },
    'set',
    40,
  ),
  mutant(
    'set-held-in-part',
    'P7: a set says that it is held when a part of it is lost',
    {
      file: SET,
      find: 'this.leases.every(({ held }) => held)',
      replace: 'this.leases.some(({ held }) => held)',
    },
    'set',
    1500,
    765,
  ),
  mutant(
    'set-given-in-part',
    'P8: a set is given of which the first ran out while the last was waited for',
    { file: SET, find: 'lease.assertHeld();', replace: ';' },
    'signal',
    3000,
    1574,
  ),
  mutant(
    'result-forgotten',
    'P9: `run` forgets what its function returned',
    { file: 'locks/run.js', find: 'return outcome.value;', replace: 'return undefined;' },
    'errors',
    10,
  ),
  mutant(
    'outcome-untold',
    'P10: a `run` whose lease was lost does not say what became of its function',
    { file: 'locks/run.js', find: 'store, token, outcome,', replace: 'store, token,' },
    'errors',
    20,
  ),
  mutant(
    'holders-not-shown',
    'P11: `inspect` does not show who holds a lock',
    { file: HOLDFAST, find: 'holders: info.holders.map(open)', replace: 'holders: []' },
    'errors',
    20,
  ),
  mutant(
    'ttl-of-a-call-ignored',
    'P12: a call has a ttl of its own, and its lease lasts longer',
    { file: 'locks/lock.js', find: 'ttl: ttl ?? laneKind.ttl', replace: 'ttl: laneKind.ttl' },
    'signal',
    20,
  ),
  mutant(
    'renewed-against-its-will',
    'P13: a lease that is not to be renewed is',
    { file: 'locks/lock.js', find: 'ttl, renew, fair });', replace: 'ttl, renew: true, fair });' },
    'signal',
    30,
  ),
  mutant(
    'asserted-after-release',
    'P14: `assertHeld` says nothing of a lease that was released',
    {
      file: LEASE,
      find: "throw this.lostError('it was released');",
      replace: ';',
    },
    'signal',
    10,
  ),
  mutant(
    'waited-untold',
    'P15: the error of a wait does not say how long it was',
    { file: 'runtime/lane.js', find: 'Math.round(this.session.env.mono() - task.since)', replace: '0' },
    'errors',
    20,
  ),
]
