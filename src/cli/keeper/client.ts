import { connect } from 'node:net'
import { CommandError, EXIT } from '../exit.ts'
import { forget, leasesHere, socketOf } from './folder.ts'
import type { Question, ReleaseReport, Status } from './wire.ts'

/** It asks the store, which has five seconds to answer. */
const ANSWER_MS = 20_000

/** Asks the keeper of a lease. Undefined when there is none any more. */
async function ask(lease: string, question: Question): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketOf(lease))
    let text = ''
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new CommandError(`The process that keeps lease ${lease} does not answer.`, EXIT.system))
    }, ANSWER_MS)
    socket.setEncoding('utf8').on('data', (part) => (text += String(part)))
    socket.on('error', () => {
      forget(lease)
      resolve(undefined)
    })
    // A keeper that is killed in the middle of its answer has said nothing.
    socket.on('end', () => resolve(text.endsWith('\n') ? (JSON.parse(text) as unknown) : undefined))
    socket.on('close', () => clearTimeout(timer))
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
