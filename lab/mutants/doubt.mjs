// What a process forgets of its own claims: that one is in doubt, that somebody waits behind it. See lab/kill-matrix.mjs.
import { mutant } from './of-programs.mjs'

const CLAIM = 'runtime/claim.js'
const ASKING = 'runtime/asking.js'
const HOLDING = 'runtime/holding.js'

/** @type {import('../kill-matrix.mjs').Mutant[]} */
export const doubtMutants = [
  mutant(
    'doubt-forgotten',
    'D1: a request without an answer leaves no doubt, and its late copy holds the lock for nobody',
    {
      file: ASKING,
      find: "if (answer.kind === 'unknown')\n        claim.doubt();",
      replace: ';',
    },
    'leftovers',
    60,
  ),
  mutant(
    'doubt-over-with-the-release',
    'D1: a claim that was asked for twice is released, and the copy that arrives then holds the lock for nobody',
    { file: HOLDING, find: "if (kind === 'unknown' || claim.doubtful)", replace: "if (kind === 'unknown')" },
    'leftovers',
    150,
  ),
  mutant(
    'doubt-over-with-a-refusal',
    'D1: a claim that was given up is refused, and the copy that arrives then holds the lock for nobody',
    { file: ASKING, find: 'if (!nothingThere || doubtful)', replace: 'if (!nothingThere)' },
    'leftovers',
    1500,
    558,
  ),
  mutant(
    'queued-try-stays',
    'D2: a try that the store put in line is forgotten there',
    {
      file: ASKING,
      find: 'claim.doubt();\n    if (claim.only === null)',
      replace: 'if (claim.only === null)',
    },
    'leftovers',
    1500,
    119,
  ),
  mutant(
    'queue-forgotten-by-the-grant',
    'D3: the answer “held” is older than the message that a queue has formed, and is believed',
    {
      file: CLAIM,
      find: 'this.contended ||= contended;\n        this.takeTokens',
      replace: 'this.contended = contended;\n        this.takeTokens',
    },
    'bypass',
    60,
  ),
  mutant(
    'queue-forgotten-by-a-renewal',
    'D3: an old answer to a renewal hides the queue that has formed',
    {
      file: CLAIM,
      find: 'this.contended ||= contended;\n        if (this.lane.shared)',
      replace: 'this.contended = contended;\n        if (this.lane.shared)',
    },
    'bypass',
    60,
  ),
  mutant(
    'always-calm',
    'D3: a release says that nobody was seen behind it, and the store takes the way on which nobody is told',
    {
      file: HOLDING,
      find: 'claim.leaving(!claim.contended && sentAt < claim.validUntil)',
      replace: 'claim.leaving(true)',
    },
    'bypass',
    30,
  ),
  mutant(
    'revoked-and-granted',
    'D4: the message that a lock was taken away comes before the answer that grants it, and is forgotten',
    { file: 'runtime/lane.js', find: 'claim.revoke();', replace: ';' },
    'signal',
    600,
  ),
]
