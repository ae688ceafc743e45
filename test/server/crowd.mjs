// Ten thousand connections that only take up room: half of them silent, half of them sending a byte a second. Those
// that are closed come back.
import { connect } from 'node:net'

const [port, size] = process.argv.slice(2).map(Number)
const open = new Set()
let ever = 0

function join() {
  const slow = ever++ % 2 === 1
  const socket = connect(port, '127.0.0.1', () => {
    if (slow) socket.write('GET /v1/locks HTTP/1.1\r\nhost: localhost\r\nx: ')
  })
  socket.slow = slow
  open.add(socket)
  socket.on('error', () => {})
  socket.on('close', () => open.delete(socket))
}

setInterval(() => {
  for (let number = 0; number < 250 && open.size < size; number++) join()
}, 20)
setInterval(() => {
  for (const socket of open) if (socket.slow && socket.writable) socket.write('a')
}, 1000)
setInterval(() => process.send({ ever }), 100)
process.on('disconnect', () => process.exit())
