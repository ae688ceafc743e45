// Bugs in what a client leaves behind: at the store, in its own process, with those who wait. See lab/kill-matrix.mjs.

/** @type {import('../kill-matrix.mjs').Mutant[]} */
export const upkeepMutants = [
  {
    id: 'no-sign-of-life',
    bugClass: '3: a subscription is lost, and the waiter sleeps for ever',
    edits: [
      {
        file: 'runtime/upkeep.js',
        find: 'queued(claim, sentAt, retryAfter = Infinity) {',
        replace: 'queued(claim, sentAt, retryAfter = Infinity) { return;',
      },
    ],
    scenario: 'claim-queue/network',
    check: 'liveness',
    seeds: 60,
  },
  {
    id: 'early-message-dropped',
    bugClass: '2: a grant that overtakes the answer “queued” is dropped',
    edits: [{ file: 'runtime/asking.js', find: 'claim.hearOfGrant();', replace: ';' }],
    scenario: 'claim-queue/calm',
    check: 'liveness',
    seeds: 150,
    seed: 23,
  },
  {
    id: 'renews-the-released',
    bugClass: '4: renewal survives release',
    edits: [
      {
        file: 'runtime/claim.js',
        find: "this.state = 'gone';\n        this.cancel();",
        replace: "this.state = 'gone';",
      },
      { file: 'runtime/upkeep.js', find: "claim.state !== 'gone' && ", replace: '' },
      {
        file: 'runtime/upkeep.js',
        find: 'claim.landed();',
        replace: 'claim.landed(); this.renewals.set(claim, now + 300, 300);',
      },
    ],
    scenario: 'claim-queue/calm',
    check: 'noise',
    seeds: 10,
  },
  {
    id: 'late-grant-kept',
    bugClass: '12: granted after the caller gave up',
    edits: [
      {
        file: 'runtime/asking.js',
        find: 'if (!nothingThere || doubtful)',
        replace: 'if (false)',
      },
    ],
    scenario: 'claim-queue/everything',
    check: 'leftovers',
    seeds: 400,
    seed: 250,
  },
  {
    id: 'waiter-stays-in-line',
    bugClass: '13: a waiter that gave up stays in the queue',
    edits: [
      {
        file: 'runtime/asking.js',
        find: "if (state === 'asking' && !doubtful)",
        replace: 'if (true)',
      },
    ],
    scenario: 'claim-queue/partition',
    check: 'leftovers',
    seeds: 600,
    seed: 85,
  },
  {
    id: 'release-unknown-forgotten',
    bugClass: '19: a release failed, and only this process thinks that it did not',
    edits: [
      {
        file: 'runtime/holding.js',
        find: "if (kind === 'unknown' || claim.doubtful)",
        replace: 'if (false)',
      },
    ],
    scenario: 'claim-queue/network',
    check: 'leftovers',
    seeds: 600,
    seed: 38,
  },
  {
    id: 'cleanup-gives-up',
    bugClass: '12: clean-up that tries once',
    edits: [
      {
        file: 'runtime/cleanup.js',
        find: "if (kind !== 'unknown' || now >= removal.until)",
        replace: 'if (true)',
      },
    ],
    scenario: 'claim-queue/partition',
    check: 'leftovers',
    seeds: 500,
    seed: 422,
  },
  {
    id: 'turn-without-end',
    bugClass: '13: a process keeps the lock from the queue of the others',
    edits: [{ file: 'runtime/turn.js', find: 'if (!contended)', replace: 'if (lane !== null)' }],
    scenario: 'claim-queue/calm',
    check: 'bypass',
    seeds: 60,
    seed: 7,
  },
  {
    id: 'token-shared',
    bugClass: '35: tasks of one process share a token',
    edits: [
      {
        file: 'runtime/claim.js',
        find: 'return this.nextToken++;',
        replace: 'return this.nextToken;',
      },
    ],
    scenario: 'claim-queue/calm',
    check: 'token order',
    seeds: 40,
  },
  {
    id: 'reentry-with-a-new-token',
    bugClass: '35: a re-entry fences its own outer lease',
    edits: [
      {
        file: 'locks/nested-lease.js',
        find: 'return this.outer.token;',
        replace: 'return this.outer.token + 1n;',
      },
    ],
    scenario: 'claim-queue/calm',
    check: 'linearizability',
    seeds: 40,
  },
  {
    id: 'timer-left',
    bugClass: '30: a timer is left when the wait is over',
    edits: [{ file: 'runtime/task.js', find: 'this.cancel();', replace: ';' }],
    scenario: 'claim-queue/calm',
    check: 'noise',
    seeds: 10,
  },
  {
    id: 'listener-left',
    bugClass: '31: a listener is left on the caller’s signal',
    edits: [{ file: 'runtime/task.js', find: 'this.forgetSignal?.();', replace: ';' }],
    scenario: 'claim-queue/calm',
    check: 'noise',
    seeds: 10,
  },
  {
    id: 'background-throws',
    bugClass: '32: a failed renewal throws in the background',
    edits: [
      {
        file: 'runtime/upkeep.js',
        find: "const whole = 'kind' in answers || answers.length === batch.length;",
        replace:
          "const whole = true; if ('kind' in answers || answers.some((a) => a.kind === 'unknown')) throw new Error('renewal');",
      },
    ],
    scenario: 'claim-queue/partition',
    check: 'noise',
    seeds: 60,
  },
]
