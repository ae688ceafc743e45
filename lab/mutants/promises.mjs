// Promises that a call makes and that no rival notices when they are broken. See lab/kill-matrix.mjs.

const LEASE = 'runtime/lease.js'
const CLOSING = 'runtime/closing.js'
const SET = 'locks/lock-set.js'

const mutant = (id, bugClass, edit, check, seeds) => ({
  id,
  bugClass,
  edits: [edit],
  scenario: 'programs',
  check,
  seeds,
})

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
    { file: CLOSING, find: 'this.cutShort = namesOf(held);', replace: ';' },
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
    250,
  ),
  mutant(
    'set-given-in-part',
    'P8: a set is given of which the first ran out while the last was waited for',
    { file: SET, find: 'lease.assertHeld();', replace: ';' },
    'signal',
    200,
  ),
]
