// Connections that only cost: silent ones, some that send their headers or their body a byte at a time, some that ask for
// large pages and read nothing. They come from many addresses, and who is closed comes back.
import { connect } from 'node:net'

const [port, wished] = [Number(process.argv[2]), JSON.parse(process.argv[3])]
const ADDRESSES = 40
const PAGE = 'GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n'
const BODY =
  'POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nholdfast-request: 1\r\ncontent-length: 9000\r\n\r\n{'

const BEGIN = {
  silent: () => {},
  slowHeaders: (socket) => socket.write('GET /v1/locks HTTP/1.1\r\nhost: localhost\r\nx: '),
  slowBody: (socket) => socket.write(BODY),
  deaf: (socket) => {
    socket.pause()
    socket.write(PAGE.repeat(30))
  },
}
const DRIPS = { silent: '', slowHeaders: 'a', slowBody: ' ', deaf: '' }

const open = Object.fromEntries(Object.keys(wished).map((kind) => [kind, new Set()]))
let ever = 0

function join(kind) {
  const localAddress = `127.0.1.${1 + (ever++ % ADDRESSES)}`
  const socket = connect({ port, host: '127.0.0.1', localAddress }, () => BEGIN[kind](socket))
  open[kind].add(socket)
  socket.on('error', () => {})
  socket.on('close', () => open[kind].delete(socket))
}

// At most so many a second: a flood of connects would fill the system's own queue before the server sees any of it.
const PER_TICK = 8
setInterval(() => {
  const kinds = Object.keys(wished)
  for (let number = 0; number < PER_TICK; number++) {
    const kind = kinds.sort((a, b) => open[a].size / wished[a] - open[b].size / wished[b])[0]
    if (open[kind].size < wished[kind]) join(kind)
  }
}, 20)
setInterval(() => {
  for (const [kind, drip] of Object.entries(DRIPS))
    if (drip !== '') for (const socket of open[kind] ?? []) if (socket.writable) socket.write(drip)
}, 1000)
setInterval(
  () =>
    process.send({
      ever,
      open: Object.fromEntries(Object.entries(open).map(([kind, { size }]) => [kind, size])),
    }),
  100,
)
process.on('disconnect', () => process.exit())
