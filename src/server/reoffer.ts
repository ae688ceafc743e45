import type { IncomingMessage, Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'

/** Headers of an offer to speak something else. Whoever makes one also understands a plain answer. */
const OFFER = new Set(['upgrade', 'http2-settings', 'connection'])

/**
 * Java's HttpClient and `curl --http2` offer HTTP/2 with their first request. Who does not take an offer answers as if
 * it had not been made; but Node takes every request with an Upgrade header out of HTTP as soon as anybody listens for
 * one. So it is put back, without the offer, in front of what followed it.
 */
export function withoutOffer(
  server: HttpServer | HttpsServer,
  { method = 'GET', url = '/', rawHeaders }: IncomingMessage,
  socket: Socket,
  head: Buffer,
): void {
  let text = `${method} ${url} HTTP/1.1\r\n`
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
    if (!OFFER.has(name.toLowerCase())) text += `${name}: ${value}\r\n`
  }
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]))
  server.emit('encrypted' in socket ? 'secureConnection' : 'connection', socket)
}
