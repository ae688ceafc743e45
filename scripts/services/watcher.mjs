// Outlives the process that started servers, by a moment: when that process is gone, however it went, the pipe on
// stdin closes, and what it left behind is ended and removed. One watcher serves all servers of a process.
//
// Each line on stdin is the whole list of what is alive: [{ pid?, container?, dir? }, …]. The last one counts.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'

// Ctrl-C reaches the whole terminal group; the pipe tells when it is time.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})

let left = []
const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  left = JSON.parse(line)
})
lines.on('close', () => {
  for (const { pid, container } of left) {
    if (container !== undefined) spawnSync('docker', ['rm', '--force', container], { stdio: 'ignore' })
    if (pid !== undefined) endNow(pid)
  }
  for (const { dir } of left) {
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
  }
})

function endNow(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}
