// Bugs in how long a client believes: clocks, validity, the ends of leases. See lab/kill-matrix.mjs.

/** @type {import('../kill-matrix.mjs').Mutant[]} */
export const validityMutants = [
  {
    id: 'claim-counts-from-reply',
    bugClass: '8: validity counted from the reply of the acquire',
    edits: [
      {
        file: 'runtime/asking.js',
        find: 'const end = validUntil(sentAt, lane.ttl,',
        replace: 'const end = validUntil(now, lane.ttl,',
      },
    ],
    scenario: 'claim-queue/everything',
    check: 'exclusivity',
    seeds: 800,
    seed: 112,
  },
  {
    id: 'push-is-believed',
    bugClass: '20: a grant that is told is believed, however late it arrives, and without asking',
    edits: [
      {
        file: 'runtime/lane.js',
        find: 'told(claim);',
        replace: `if (claim.state === 'queued') {
                const now = this.session.clock.now();
                noLongerComing(this.claims, claim);
                claim.hold(now, now + Math.min(this.ttl, this.session.patience) * 0.98, event);
                this.session.upkeep.held(claim, now);
                holding.serveFirst(claim, now);
            } else told(claim);`,
      },
    ],
    scenario: 'claim-queue/processes',
    check: 'exclusivity',
    seeds: 200,
  },
  {
    id: 'push-from-a-replica-is-believed',
    bugClass: '20: a grant that a replica forwards is believed without asking',
    edits: [
      {
        file: 'runtime/lane.js',
        find: 'told(claim);',
        replace: `if (claim.state === 'queued') {
                const now = this.session.clock.now();
                noLongerComing(this.claims, claim);
                claim.hold(now, now + Math.min(this.ttl, this.session.patience) / 3, event);
                this.session.upkeep.renewNow(claim);
                holding.serveFirst(claim, now);
            } else told(claim);`,
      },
    ],
    scenario: 'redis/early-messages',
    check: 'exclusivity',
    seeds: 30,
  },
  {
    id: 'wall-clock',
    bugClass: '9: validity on the wall clock alone',
    edits: [
      {
        file: 'runtime/clock.js',
        find: 'const mono = this.env.mono();',
        replace: 'const mono = this.env.wall();',
      },
    ],
    scenario: 'claim-queue/clocks',
    check: 'exclusivity',
    seeds: 60,
  },
  {
    id: 'suspend-not-counted',
    bugClass: '10: the monotonic clock alone, which sleeps with the machine',
    edits: [
      {
        file: 'runtime/clock.js',
        find: 'const jump = Math.max(bootMoved > this.bootNoise ? bootMoved : 0, this.useWall ? wallMoved : 0);',
        replace: 'const jump = 0;',
      },
    ],
    scenario: 'claim-queue/processes',
    check: 'exclusivity',
    seeds: 100,
  },
  {
    id: 'held-without-a-look',
    bugClass: '11: after a blocked event loop the holder goes on',
    edits: [{ file: 'runtime/lease.js', find: 'now >= this.end', replace: 'now >= Infinity' }],
    scenario: 'claim-queue/processes',
    check: 'abort latency',
    seeds: 100,
  },
  {
    id: 'no-margin',
    bugClass: '8: no margin for clocks that differ in rate',
    edits: [
      {
        file: 'core/validity.js',
        find: '(ttl * DRIFT + RESOLUTION_MS + earlyExpiry)',
        replace: '(0 * DRIFT + 0 * RESOLUTION_MS + earlyExpiry)',
      },
    ],
    scenario: 'claim-queue/rates',
    check: 'exclusivity',
    seeds: 600,
    seed: 37,
  },
  {
    id: 'silence-is-no-end',
    bugClass: '34: renewals fail, and nothing ends the lease in time',
    edits: [
      {
        file: 'runtime/upkeep.js',
        find: 'expireUnanswered(claim) {',
        replace: 'expireUnanswered(claim) { return;',
      },
      {
        file: 'runtime/upkeep.js',
        find: 'else\n            session.expiries.set(claim, claim.validUntil, claim.ttl);',
        replace: '',
      },
    ],
    scenario: 'claim-queue/partition',
    check: 'abort latency',
    seeds: 60,
    seed: 9,
  },
  {
    id: 'flag-after-release',
    bugClass: '38: the lease says held until the release was answered',
    edits: [{ file: 'runtime/lease.js', find: "this.state = 'released';", replace: '' }],
    scenario: 'claim-queue/calm',
    check: 'abort latency',
    seeds: 10,
  },
]
