import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'

import { Failure } from './failure.ts'

/** Reads a body of JSON. How long that may take is the HTTP server's business. */
export function readJson(request: IncomingMessage, limit: number): Promise<unknown> {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > limit) return Promise.reject(tooLarge(limit))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) {
        // The rest is not read; the connection is closed after the answer.
        request.pause()
        return reject(tooLarge(limit))
      }
      chunks.push(chunk)
    })
    request.on('end', () => {
      try {
        const bytes = Buffer.concat(chunks)
        // Bytes that are none would all become the same character, and different names one.
        if (!isUtf8(bytes)) return reject(new Failure('INVALID_ARGUMENT', 'The body is not UTF-8.'))
        resolve(JSON.parse(bytes.toString('utf8')))
      } catch {
        reject(new Failure('INVALID_ARGUMENT', 'The body is not JSON.'))
      }
    })
    request.on('error', () => reject(new Failure('INVALID_ARGUMENT', 'The body ended early.')))
  })
}

function tooLarge(limit: number): Failure {
  return new Failure('TOO_LARGE', `The body must have at most ${limit} bytes.`)
}
