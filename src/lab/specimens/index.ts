import { failover } from './failover.ts'
import { getsetClocks, getsetLosers } from './getset.ts'
import { parentWatch, readWriteParentWatch, uniqueNode } from './herds.ts'
import { mysqlRow } from './mysql-row.ts'
import { delByAnyone, getThenDel } from './releases.ts'
import { setnxExpireScript, setnxThenExpire } from './setnx-expire.ts'
import { setnx } from './setnx.ts'
import type { Specimen } from './specimen.ts'
import { spinning } from './spinning.ts'

export { redisPair } from './redis-pair.ts'
export { runSpecimen } from './run-specimen.ts'
export type { Cast } from './run-specimen.ts'
export type { RedisPair, Servers, Specimen } from './specimen.ts'

/** The designs that are shown on the way to the right one, in the order in which they are usually shown. */
export const SPECIMENS: readonly Specimen[] = [
  setnx,
  setnxThenExpire,
  setnxExpireScript,
  delByAnyone,
  getThenDel,
  getsetClocks,
  getsetLosers,
  spinning,
  failover,
  uniqueNode,
  parentWatch,
  readWriteParentWatch,
  mysqlRow,
]
