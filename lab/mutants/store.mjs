// Bugs of the rule that stores follow, and of what they build on it. See lab/kill-matrix.mjs.

const QUEUE = 'core/claim-queue.js'

/** @type {import('../kill-matrix.mjs').Mutant[]} */
export const storeMutants = [
  {
    id: 'release-anybody',
    bugClass: '1: a release deletes another owner’s lock',
    edits: [
      {
        file: QUEUE,
        find: 'const holder = this.state.holders.get(id);',
        replace: 'const holder = this.state.holders.get(id) ?? [...this.state.holders.values()][0];',
      },
    ],
    scenario: 'claim-queue/processes',
    check: 'exclusivity',
    seeds: 60,
  },
  {
    id: 'no-wake-up',
    bugClass: '2: the wake-up is lost between release and waiter',
    edits: [
      {
        file: QUEUE,
        find: "this.tell(waiter.id, { kind: 'granted'",
        replace: "((..._) => {})(waiter.id, { kind: 'granted'",
      },
    ],
    scenario: 'claim-queue/calm',
    check: 'liveness',
    seeds: 10,
  },
  {
    id: 'renew-resurrects',
    bugClass: '5: a renewal brings a lock back that was gone',
    edits: [
      {
        file: QUEUE,
        find: "return { kind: 'lost' };",
        replace:
          "this.grant({ id: request.id, owner: '', weight: 1, tokens: 1 }, request.ttl); return { kind: 'renewed', contended: false };",
      },
    ],
    scenario: 'claim-queue/processes',
    check: 'exclusivity',
    seeds: 100,
  },
  {
    id: 'late-copy-is-let-in',
    bugClass: '12: a request that arrives after the caller gave up leaves a ghost',
    edits: [
      {
        file: QUEUE,
        find: 'if (state.withdrawn.size > 0 && state.withdrawn.has(request.id))',
        replace: 'if (state.withdrawn.has(""))',
      },
    ],
    scenario: 'claim-queue/network',
    check: 'leftovers',
    seeds: 600,
    seed: 95,
  },
  {
    id: 'plain-counter',
    bugClass: '24: tokens are counted again after the memory was lost',
    edits: [
      {
        file: QUEUE,
        find: 'Math.max(this.state.fence + 1, this.now.micros)',
        replace: '(this.state.fence + 1)',
      },
    ],
    scenario: 'claim-queue/amnesia',
    check: 'lost update',
    seeds: 300,
    seed: 249,
  },
  {
    id: 'weights-ignored',
    bugClass: '35: shared and exclusive holders are confused',
    edits: [
      {
        file: QUEUE,
        find: 'if (state.used + waiter.weight > state.capacity) {',
        replace: 'if (state.used >= state.capacity) {',
      },
    ],
    scenario: 'claim-queue/calm',
    check: 'exclusivity',
    seeds: 40,
  },
  {
    id: 'never-expires',
    bugClass: 'R1: a lock without an end: whoever dies with it keeps it',
    edits: [{ file: QUEUE, find: 'if (now.ms < state.nextExpiry)', replace: 'if (now.ms < Infinity)' }],
    scenario: 'claim-queue/processes',
    check: 'liveness',
    seeds: 40,
  },
  {
    id: 'reader-passes-writer',
    bugClass: '20: a waiter does not look again at who stands before it',
    edits: [
      {
        file: 'stores/zookeeper/position.js',
        find: "if (shared && node.kind === 'read')",
        replace: 'if (shared)',
      },
    ],
    scenario: 'session/calm',
    check: 'exclusivity',
    seeds: 40,
  },
  {
    id: 'neighbour-gave-up',
    bugClass: '20: whoever stood before a waiter is gone, and the waiter takes that for its turn',
    edits: [
      { file: 'stores/zookeeper/position.js', find: 'ahead === 1 && contended', replace: 'ahead >= 1' },
    ],
    scenario: 'session/calm',
    check: 'exclusivity',
    seeds: 40,
  },
  {
    id: 'proof-never-ages',
    bugClass: '8: a grant is counted from later than what it rests on',
    edits: [
      {
        file: 'stores/zookeeper/proof.js',
        find: 'return isWithin(proof, PROOF_MS, clocks);',
        replace: 'return proof.mono > -Infinity;',
      },
    ],
    scenario: 'session/processes',
    check: 'exclusivity',
    seeds: 200,
    seed: 179,
  },
  {
    id: 'downgrade-goes-behind',
    bugClass: '35: a writer that goes on as a reader lets a waiting writer in',
    edits: [
      {
        file: 'lab/sim/stores/session-server.js',
        find: "const name = node.name.replace('__WRIT__', '__READ__');",
        replace: "const name = `${node.name.slice(0, -18)}__READ__${String(dir.next).padStart(10, '0')}`;",
      },
    ],
    scenario: 'session/calm',
    check: 'exclusivity',
    seeds: 20,
  },
  {
    id: 'seconds-cut-off',
    bugClass: '25: a ttl in whole seconds ends before the client thinks so',
    edits: [
      { file: 'stores/memcached/capabilities.js', find: 'earlyExpiry: 1000', replace: 'earlyExpiry: 0' },
      { file: 'stores/memcached/capabilities.js', find: 'ADDED_S = 3', replace: 'ADDED_S = 0' },
    ],
    scenario: 'cas/partition',
    check: 'exclusivity',
    seeds: 100,
    seed: 8,
  },
  {
    id: 'grant-told-first',
    bugClass: '20: a grant is told before it is made, to a listener at a replica, and then not made',
    edits: [
      {
        file: QUEUE,
        find: 'else if (this.reachable(sessionOf(waiter.id))) {',
        replace:
          "else if (this.reachable(sessionOf(waiter.id)) || this.tell(waiter.id, { kind: 'granted', name: this.name, id: waiter.id, token: 1n, count: 1, contended: true })) {",
      },
    ],
    scenario: 'redis/planned-failover',
    check: 'messages',
    seeds: 30,
  },
  {
    id: 'half-is-enough',
    bugClass: 'Q2: held without a majority',
    edits: [
      {
        file: 'stores/quorum/quorum.js',
        find: 'Math.floor(nodes.length / 2) + 1',
        replace: 'Math.floor(nodes.length / 2)',
      },
    ],
    scenario: 'quorum/partition',
    check: 'exclusivity',
    seeds: 30,
  },
  {
    id: 'no-probation',
    bugClass: '24: a node that lost its memory votes again at once',
    edits: [
      {
        file: 'stores/memory/votes.js',
        find: 'const readyIn = this.firstSeen + probation - ms;',
        replace: 'const readyIn = 0;',
      },
    ],
    scenario: 'quorum/restart',
    check: 'exclusivity',
    seeds: 60,
    seed: 5,
  },
]
