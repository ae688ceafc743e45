import { closeSync, openSync } from 'node:fs'

/**
 * SIGHUP means two things: a terminal was closed, or somebody asks to read files again. A server that was started at a
 * terminal ends with it; nobody else could see or stop it. `ended`: the terminal is gone.
 */
export function onHangUp({ again, ended }: { again: () => void; ended: () => void }): void {
  const hadTerminal = process.stdin.isTTY
  process.on('SIGHUP', () => (hadTerminal && !hasTerminal() ? ended() : again()))
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
