// Just enough of a network client to ask a server whether it is there, without any driver: a driver under test must
// not be what the tests stand on.
import { connect } from 'node:net'

/**
 * Sends bytes and collects the answer until `parse` makes something of it.
 * @template T
 * @param {{ host: string, port: number, timeout?: number }} at
 * @param {string} request
 * @param {(answer: string) => T | undefined} parse
 * @returns {Promise<T>}
 */
export function ask({ host, port, timeout = 2_000 }, request, parse) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    const end = (settle, value) => {
      socket.destroy()
      settle(value)
    }
    let answer = ''
    socket.setTimeout(timeout, () =>
      end(reject, new Error(`no answer from ${host}:${port} in ${timeout} ms`)),
    )
    socket.on('connect', () => socket.write(request))
    socket.on('data', (data) => {
      answer += data.toString('latin1')
      const parsed = parse(answer)
      if (parsed !== undefined) end(resolve, parsed)
    })
    socket.on('error', (error) => end(reject, error))
    socket.on('close', () => reject(new Error(`${host}:${port} closed the connection`)))
  })
}

/** One Redis command on a connection of its own. Errors of the server are thrown. */
export async function redisCommand(at, ...words) {
  const parts = words.map((word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`)
  const reply = await ask(at, `*${words.length}\r\n${parts.join('')}`, (answer) => parseReply(answer, 0))
  if (reply.value instanceof Error) throw reply.value
  return reply.value
}

/** @returns {{ value: unknown, end: number } | undefined} nothing while the reply is incomplete */
function parseReply(text, start) {
  const lineEnd = text.indexOf('\r\n', start)
  if (lineEnd === -1) return undefined
  const rest = text.slice(start + 1, lineEnd)
  const end = lineEnd + 2
  switch (text[start]) {
    case '+':
      return { value: rest, end }
    case '-':
      return { value: new Error(rest), end }
    case ':':
      return { value: Number(rest), end }
    case '$':
      return parseBulk(text, end, Number(rest))
    case '*':
      return parseArray(text, end, Number(rest))
    default:
      throw new Error(`not a Redis reply: ${text.slice(start, start + 20)}`)
  }
}

function parseBulk(text, start, length) {
  if (length === -1) return { value: null, end: start }
  if (text.length < start + length + 2) return undefined
  return { value: text.slice(start, start + length), end: start + length + 2 }
}

function parseArray(text, start, length) {
  const value = []
  let end = start
  for (let i = 0; i < length; i++) {
    const item = parseReply(text, end)
    if (item === undefined) return undefined
    value.push(item.value)
    end = item.end
  }
  return { value, end }
}

/** Asks again until the answer is yes; an error counts as no, for a starting server gives many. */
export async function until(question, { what, timeout = 30_000 }) {
  const deadline = Date.now() + timeout
  for (;;) {
    if (await question().catch(() => false)) return
    if (Date.now() > deadline) throw new Error(`waited ${timeout / 1000} s in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}
