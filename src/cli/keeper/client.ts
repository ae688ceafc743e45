import { connect } from 'node:net'
import { forget, leasesHere, socketOf } from './folder.ts'
import type { Question, ReleaseReport, Status } from './wire.ts'

/** Asks the keeper of a lease. Undefined when there is none any more. */
async function ask(lease: string, question: Question): Promise<unknown> {
  return new Promise((resolve) => {
    const socket = connect(socketOf(lease))
    let text = ''
    socket.setEncoding('utf8').on('data', (part) => (text += String(part)))
    socket.on('error', () => {
      forget(lease)
      resolve(undefined)
    })
    socket.on('end', () => resolve(text === '' ? undefined : (JSON.parse(text) as unknown)))
    socket.write(`${question}\n`)
  })
}

export async function giveBack(lease: string): Promise<ReleaseReport | undefined> {
  return (await ask(lease, 'release')) as ReleaseReport | undefined
}

/** The leases on a name that this user's keepers have. */
export async function leasesOn(name: string): Promise<readonly string[]> {
  const found = await Promise.all(
    leasesHere().map(async (lease) => ({
      lease,
      status: (await ask(lease, 'status')) as Status | undefined,
    })),
  )
  return found.filter(({ status }) => status?.name === name).map(({ lease }) => lease)
}
