import { ALL } from '../../core/contract.ts'
import type { ClaimInfo, ListPage, ListQuery, NameInfo } from '../../core/contract.ts'
import type { Claim } from './claim.ts'
import { hasCode } from './client/index.ts'
import { removeNode } from './remove-node.ts'
import type { NodeData, ZooKeeper } from './client/index.ts'
import { now } from './client/time.ts'
import { decodeName, protection } from './names.ts'
import { readNote } from './node-data.ts'
import { capacityOf, lineUp, parseNode } from './position.ts'
import { gateOf, leasesOf, parseCapacity } from './semaphore.ts'
import { noChildren } from './own-node.ts'
import { tokenOf } from './token.ts'

type Known = ReadonlyMap<string, Claim>

/** Who holds a name and who waits. Foreign nodes (Curator's) are shown by what they say of themselves. */
export async function inspectName(zk: ZooKeeper, name: string, dir: string, known: Known): Promise<NameInfo> {
  const [, { children }, leases, gate] = await Promise.all([
    zk.sync(),
    zk.getChildren(dir).catch(noChildren),
    zk.getChildren(leasesOf(dir)).catch(noChildren),
    zk.getChildren(gateOf(dir)).catch(noChildren),
  ])
  if (leases.children.length + gate.children.length > 0) {
    return inspectSemaphore(zk, name, dir, { leases: leases.children, gate: gate.children, known })
  }
  const { line, held } = lineUp(children)
  const infos = await Promise.all(
    line.map(async ({ name: node, kind }, index) => {
      const weight = kind === 'write' ? ALL : 1
      return describe(await read(zk, `${dir}/${node}`), { node, weight, held: index < held, zk, known })
    }),
  )
  const present = infos
    .map((info, index) => ({ info, held: index < held }))
    .filter(({ info }) => info !== null)
  const capacity = line[0] === undefined ? 0 : capacityOf(line[0].kind)
  return {
    name,
    capacity,
    holders: present.flatMap(({ info, held: holds }) => (holds && info !== null ? [info] : [])),
    waiters: present.flatMap(({ info, held: holds }) => (!holds && info !== null ? [info] : [])),
  }
}

interface SemaphoreNodes {
  readonly leases: readonly string[]
  readonly gate: readonly string[]
  readonly known: Known
}

async function inspectSemaphore(
  zk: ZooKeeper,
  name: string,
  dir: string,
  nodes: SemaphoreNodes,
): Promise<NameInfo> {
  const { known } = nodes
  const { line } = lineUp(nodes.gate)
  const waiting = line.map(({ name: node }) => node)
  const [agreed, waiters, leases] = await Promise.all([
    read(zk, leasesOf(dir)),
    Promise.all(
      waiting.map(async (node) =>
        describe(await read(zk, `${gateOf(dir)}/${node}`), { node, weight: 1, held: false, zk, known }),
      ),
    ),
    Promise.all(
      nodes.leases.map(async (node) =>
        describe(await read(zk, `${leasesOf(dir)}/${node}`), { node, weight: 1, held: true, zk, known }),
      ),
    ),
  ])
  const capacity = (agreed === null ? null : parseCapacity(agreed.data)) ?? nodes.leases.length
  const atGate = new Set(waiters.map((info) => info?.id))
  const holders = new Map<string, ClaimInfo>()
  // A claim of several permits has as many nodes. One that is still at the gate has its nodes but not yet its grant.
  const full = nodes.leases.length > capacity
  for (const lease of leases) {
    if (lease === null || (full && atGate.has(lease.id))) continue
    const first = holders.get(lease.id)
    if (first === undefined || (lease.token ?? 0n) < (first.token ?? 0n)) holders.set(lease.id, lease)
  }
  return {
    name,
    capacity,
    holders: [...holders.values()],
    waiters: waiters.filter((info) => info !== null && !holders.has(info.id)) as ClaimInfo[],
  }
}

type Found = Pick<NodeData, 'data'> & Partial<NodeData>

async function read(zk: ZooKeeper, path: string): Promise<Found | null> {
  try {
    return await zk.getData(path)
  } catch (error) {
    if (hasCode(error, 'NO_NODE')) return null
    if (!hasCode(error, 'NO_AUTH')) throw error
    // Somebody else's, who lets nobody read it: that it is there can be seen all the same, and since when at servers before 3.9.5.
    const stat = await zk.exists(path).catch(notAllowed)
    return stat === null ? null : { data: Buffer.alloc(0), ...(stat !== undefined && { stat }) }
  }
}

function notAllowed(error: unknown): undefined {
  if (!hasCode(error, 'NO_AUTH')) throw error
}

interface Context {
  readonly node: string
  readonly weight: number
  readonly held: boolean
  readonly zk: ZooKeeper
  readonly known: Known
}

function describe(found: Found | null, { node, weight, held, zk, known }: Context): ClaimInfo | null {
  if (found === null) return null
  const note = readNote(found.data)
  const id = note?.id ?? node
  const until = known.get(id)?.until
  const czxid = note?.czxid ?? found.stat?.czxid
  return {
    id,
    owner: note?.owner ?? found.data.toString().slice(0, 200),
    weight: note?.weight ?? weight,
    ...(held && czxid !== undefined && { token: tokenOf(czxid) }),
    // Only its own process knows more: as long as that lives, so does the session.
    expiresIn: until === undefined ? (note?.ttl ?? zk.sessionTimeout) : Math.max(0, until - now()),
  }
}

/** Names with a queue node below them, in order. */
export async function listNames(zk: ZooKeeper, root: string, query: ListQuery): Promise<ListPage> {
  const { prefix = '', limit = 100, cursor = '' } = query
  const [, { children }] = await Promise.all([zk.sync(), zk.getChildren(root).catch(noChildren)])
  const candidates = children
    .flatMap((part) => {
      const name = decodeName(part)
      return name !== undefined && name.startsWith(prefix) && name > cursor ? [{ name, part }] : []
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const names: string[] = []
  for (let start = 0; start < candidates.length; start += limit) {
    const page = candidates.slice(start, start + limit)
    const inUse = await Promise.all(page.map(({ part }) => isInUse(zk, `${root}/${part}`).catch(notAllowed)))
    for (const [index, { name }] of page.entries()) {
      // One that is not ours to look into is there for somebody.
      if (inUse[index] === false) continue
      if (names.length === limit) return { names, cursor: names.at(-1) ?? '' }
      names.push(name)
    }
  }
  return { names }
}

async function isInUse(zk: ZooKeeper, dir: string): Promise<boolean> {
  const [{ children }, gate, leases] = await Promise.all([
    zk.getChildren(dir).catch(noChildren),
    zk.exists(gateOf(dir)),
    zk.exists(leasesOf(dir)),
  ])
  return (
    children.some((name) => parseNode(name) !== null) ||
    (gate?.numChildren ?? 0) + (leases?.numChildren ?? 0) > 0
  )
}

/** Removes a claim by its id, or a node of somebody else's by the id that `inspect` showed for it: its name. */
export async function removeForeign(zk: ZooKeeper, dir: string, id: string): Promise<boolean> {
  const paths = await findForeign(zk, dir, id)
  const removed = await Promise.all(paths.map((path) => removeNode(zk, path)))
  return removed.some(Boolean)
}

/** The nodes of a claim, whoever made them. */
export async function findForeign(zk: ZooKeeper, dir: string, id: string): Promise<readonly string[]> {
  const prefix = protection(id)
  const dirs = [dir, leasesOf(dir), gateOf(dir)]
  const [, ...lists] = await Promise.all([
    zk.sync(),
    ...dirs.map((at) => zk.getChildren(at).catch(noChildren)),
  ])
  return lists.flatMap(({ children }, index) =>
    children.filter((name) => name.startsWith(prefix) || name === id).map((name) => `${dirs[index]}/${name}`),
  )
}
