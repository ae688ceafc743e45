// Bugs where two features meet: each by itself does what it should. See lab/kill-matrix.mjs.

const LANE = 'runtime/lane.js'
const programs = (check, seeds, seed) => ({ scenario: 'programs', check, seeds, seed })

/** @type {import('../kill-matrix.mjs').Mutant[]} */
export const meetingMutants = [
  {
    id: 'aborted-try-strands-a-waiter',
    bugClass:
      'M1: a try that is aborted takes the only claim with it, and who waits behind it waits for a free lock',
    edits: [
      {
        file: LANE,
        find: 'task.fail(error);\n        this.trim();\n        this.pump();',
        replace: 'task.fail(error);\n        this.trim();\n        this.retire();',
      },
    ],
    ...programs('progress', 100),
  },
  {
    id: 'close-skips-lanes',
    bugClass: 'M2: close() walks along a list that it changes, and leaves leases held and waiters waiting',
    edits: [
      {
        file: 'runtime/session.js',
        // As the walk did: one that had nothing to do was forgotten on the way, and with it what hung on it.
        find: 'for (let lane = first; lane !== null; lane = lane.sibling)\n        lanes.push(lane);',
        replace:
          'for (let lane = first; lane !== null && (lane === first || !lane.idle); lane = lane.sibling)\n        lanes.push(lane);',
      },
    ],
    ...programs('close', 1500, 130),
  },
  {
    id: 'writer-that-left-blocks-readers',
    bugClass: 'M3: a writer that gave up keeps the readers of a process from each other',
    edits: [
      {
        file: LANE,
        find: 'this.onTheirWay() === 0 && this.openClaim(now) === null;',
        replace: "this.onTheirWay() === 0 && !asTheyAre(this.claims).some(({ state }) => state === 'held');",
      },
      {
        file: LANE,
        find: 'if (this.shared && (this.onTheirWay() > 0 || this.openClaim(now) !== null))',
        replace: 'if (this.shared && sizeOf(this.claims) > 0)',
      },
    ],
    ...programs('progress', 1500, 575),
  },
  {
    id: 'nested-not-counted',
    bugClass: 'M4: the outer release frees the lock while a nested lease is held',
    edits: [
      {
        file: 'runtime/lease.js',
        find: 'const outcome = this.shared ? RELEASED : this.finish(now);',
        replace: 'const outcome = this.finish(now);',
      },
    ],
    ...programs('exclusivity', 500, 14),
  },
  {
    id: 'reader-refuses-reader',
    bugClass: 'M5: a reader’s try is refused because another reader of its process is there',
    edits: [
      {
        file: LANE,
        find: 'if (sizeOf(this.claims) >= this.kind.most || this.knownToWait)',
        replace: 'if (this.line.length > 0 || sizeOf(this.claims) >= (this.shared ? 1 : this.kind.most))',
      },
    ],
    ...programs('readers', 500, 26),
  },
  {
    id: 'readers-pass-a-writer',
    bugClass: 'M6: readers that overlap share a claim without asking whether a writer waits elsewhere',
    edits: [
      {
        file: 'runtime/turn.js',
        find: 'return session.pushes ? era > 0 && era === session.era : now - heardAt < session.turn.ms;',
        replace: 'return true;',
      },
      {
        file: LANE,
        find: 'this.session.listen();\n        const claim = this.openClaim(now);',
        replace: 'const claim = this.openClaim(now);',
      },
    ],
    ...programs('bypass', 1500, 24),
  },
  {
    id: 'contended-overtakes-held',
    bugClass:
      'M6: the message that a queue has formed comes before the answer “held”, and is forgotten by it',
    edits: [
      {
        file: 'runtime/claim.js',
        find: 'this.contended ||= contended;\n        this.takeTokens',
        replace: 'this.contended = contended;\n        this.takeTokens',
      },
    ],
    ...programs('bypass', 6000, 4958),
  },
  {
    id: 'set-registers-nothing',
    bugClass: 'M7: inside all() the names of the set wait for themselves',
    edits: [
      {
        file: 'locks/lock-set.js',
        find: '() => runInside(inside, () => body(set))',
        replace: '() => body(set)',
      },
    ],
    ...programs('nesting', 300, 6),
  },
  {
    id: 'equal-names-refused',
    bugClass: 'M7: two keys of a striped lock that fall on one stripe are refused',
    edits: [
      {
        file: 'locks/lock-set.js',
        find: 'checkAlike(before, lock);',
        replace: "throw refusal('must have different names');",
      },
    ],
    ...programs('errors', 300, 25),
  },
]
