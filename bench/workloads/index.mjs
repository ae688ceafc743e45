// What is measured. Each file holds one workload: which contestants it is for, what the parent does in a round, and
// the steps that run inside the measured processes.
import * as w1 from './w01-sequential.mjs'
import * as w2 from './w02-many-names.mjs'
import * as w3 from './w03-one-process.mjs'
import * as w4 from './w04-several-processes.mjs'
import * as w5 from './w05-idle-waiters.mjs'
import * as w6 from './w06-held-leases.mjs'
import * as w7 from './w07-redlock.mjs'
import * as w8 from './w08-hand-over.mjs'
import * as w9 from './w09-growth.mjs'
import * as w10 from './w10-readers.mjs'
import * as w11 from './w11-footprint.mjs'
import * as w12 from './w12-waiting-clients.mjs'
import * as w13 from './w13-command.mjs'
import * as w14 from './w14-stripes.mjs'
import * as w15 from './w15-one-name-zookeeper.mjs'
import * as w16 from './w16-zookeeper-client.mjs'
import * as w17 from './w17-split-votes.mjs'
import * as w18 from './w18-watched-server.mjs'

/**
 * How long and how often. `ms` is the timed part of a round.
 * @typedef {{ rounds: number, ms: number, warmUp: number } & Record<string, any>} Plan
 *
 * @typedef {Record<string, number>} Metrics
 *
 * @typedef {object} Workload
 * @property {string} id
 * @property {string} title
 * @property {string} [about] one sentence for the tables
 * @property {readonly string[]} stores
 * @property {{ full: Plan, quick: Plan }} plans
 * @property {(store: string, plan: Plan) => readonly { id: string, label: string }[]} variants
 * @property {(contestant: import('../contestants/index.mjs').Contestant) => boolean} takes
 * @property {(contestant: import('../contestants/index.mjs').Contestant) => boolean} [quickTakes] fewer, in a hurry
 * @property {string} headline the metric that ratios are made of
 * @property {readonly string[]} columns metrics for the tables, in order
 * @property {(stage: import('../lib/stage.mjs').Stage, contestant: any, plan: Plan) =>
 *   Promise<Record<string, Metrics>>} round metrics by variant
 */

/** @type {readonly Workload[]} */
export const WORKLOADS = [
  w1,
  w2,
  w3,
  w4,
  w5,
  w6,
  w7,
  w8,
  w9,
  w10,
  w11,
  w12,
  w13,
  w14,
  w15,
  w16,
  w17,
  w18,
].map(({ workload }) => workload)
