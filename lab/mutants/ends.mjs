// Ends that somebody asked for, and that do not come, or come for somebody else. See lab/kill-matrix.mjs.
import { mutant } from './of-programs.mjs'

const SET = 'locks/lock-set.js'
const DISPOSE = 'async [Symbol.asyncDispose]() {\n        await this.release();'
const KEEP = 'async [Symbol.asyncDispose]() {\n        ;'

/** @type {import('../kill-matrix.mjs').Mutant[]} */
export const endMutants = [
  mutant(
    'abort-unheard',
    'E1: a wait that was aborted goes on, and is granted',
    {
      file: 'runtime/lane.js',
      find: 'this.leave(task, errors.aborted(this, signal));',
      replace: ';',
    },
    'settles',
    60,
  ),
  mutant(
    'abort-unheard-in-a-set',
    'E1: several locks are waited for although the call was aborted',
    {
      file: SET,
      find: 'lock.acquire({ ...options, wait: left, maxHold: Infinity })',
      replace: 'lock.acquire({ ...options, signal: undefined, wait: left, maxHold: Infinity })',
    },
    'settles',
    300,
  ),
  mutant(
    'dispose-keeps',
    'E2: `await using` gives nothing back',
    { file: 'runtime/lease.js', find: DISPOSE, replace: KEEP },
    'signal',
    60,
  ),
  mutant(
    'dispose-keeps-a-set',
    'E2: `await using` gives nothing of a set back',
    { file: SET, find: DISPOSE, replace: KEEP },
    'signal',
    600,
  ),
  mutant(
    'key-changes-its-stripe',
    'E3: a key is on one stripe now and on another then, and two have it at once',
    {
      file: 'locks/holdfast.js',
      find: 'for: (key) => this.mutex(`${name}#${stripeOf(keyText(key), stripes)}`, options)',
      replace:
        'for: (key) => this.mutex(`${name}#${stripeOf(keyText(key) + this.session.env.mono(), stripes)}`, options)',
    },
    'exclusivity',
    30,
  ),
  mutant(
    'drains-for-nobody',
    'E4: close() waits for the whole drain although nobody holds anything',
    {
      file: 'runtime/closing.js',
      find: "if (this.phase === 'draining' && this.held.size === 0)",
      replace: 'if (false)',
    },
    'close',
    30,
  ),
  mutant(
    'drains-for-the-gone',
    'E4: close() waits for owners that have given back what they had',
    { file: 'runtime/closing.js', find: 'this.held.delete(claim);', replace: ';' },
    'close',
    60,
  ),
  mutant(
    'for-ever-ends',
    'E6: a wait for ever ends with the time of another wait',
    {
      file: 'runtime/deadlines.js',
      find: '(slack === undefined ? now : now + slack * first.span)',
      replace: 'now + (slack ?? 0) * first.span',
    },
    'errors',
    600,
  ),
  mutant(
    'inner-limit-ends-the-outer',
    'E5: the `maxHold` of a nested lease ends the one around it',
    {
      file: 'locks/nested-lease.js',
      find: 'this.outer.exit(this, this.claim.lane.session.clock.now()).catch(() => { });',
      replace: 'this.outer.limitReached();',
    },
    'signal',
    300,
  ),
]
