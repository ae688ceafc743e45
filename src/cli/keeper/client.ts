import { connect } from 'node:net'
import { CommandError, EXIT } from '../exit.ts'
import { forget, leasesHere, socketOf } from './folder.ts'
import type { Question, ReleaseReport, Status } from './wire.ts'

/** It asks the store, which has five seconds to answer. */
const ANSWER_MS = 20_000
/** What it knows itself. */
const STATUS_MS = 3000

/** Asks the keeper of a lease. Undefined when there is none any more. */
async function ask(lease: string, question: Question, within = ANSWER_MS): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketOf(lease))
    let text = ''
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new CommandError(`The process that keeps lease ${lease} does not answer.`, EXIT.system))
    }, within)
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

/** The leases on a name that this user's keepers have. One that does not answer may be that of another name. */
export async function leasesOn(name: string, within: number = STATUS_MS): Promise<readonly string[]> {
  const asked = leasesHere().map(async (lease) => {
    const status = (await ask(lease, 'status', within)) as Status | undefined
    return status?.name === name ? [lease] : []
  })
  const answers = await Promise.allSettled(asked)
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  const silent = answers.find((answer) => answer.status === 'rejected')
  if (found.length === 0 && silent !== undefined) throw silent.reason
  return found
}
