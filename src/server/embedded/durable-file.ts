import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Files that are there as a whole or not at all, whatever happens while they are written, and that only their owner can
 * read. A leftover of an earlier attempt is not written into: it may be readable by others, or lead elsewhere. And what
 * found no room on the disk is taken away: it would take the room that the next attempt needs.
 */

const ONLY_OWNER = 0o600

/** Where the next one is written: what a server that was killed meanwhile leaves. */
export const freshOf = (path: string): string => `${path}.new`

/** Resolves when the text, or all of its pieces, would survive a power cut. */
export async function writeDurably(path: string, text: string | Iterable<string>): Promise<void> {
  const folder = dirname(path)
  const fresh = freshOf(path)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await rm(fresh, { force: true })
  try {
    const file = await open(fresh, 'wx', ONLY_OWNER)
    try {
      await writeFile(file, text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(fresh, path)
  } catch (error) {
    await rm(fresh, { force: true }).catch(() => undefined)
    throw error
  }
  if (process.platform === 'win32') return
  // The name is part of the folder, and has to reach the disk like the contents.
  const entry = await open(folder, 'r')
  try {
    await entry.sync()
  } finally {
    await entry.close()
  }
}

/** The same, for a moment in which nothing else may happen. */
export function writeDurablyNow(path: string, text: string): void {
  const folder = dirname(path)
  const fresh = freshOf(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  rmSync(fresh, { force: true })
  try {
    withFile(openSync(fresh, 'wx', ONLY_OWNER), (file) => {
      writeFileSync(file, text)
      fsyncSync(file)
    })
    renameSync(fresh, path)
  } catch (error) {
    removeQuietly(fresh)
    throw error
  }
  if (process.platform !== 'win32') withFile(openSync(folder, 'r'), fsyncSync)
}

/** What cannot be taken away is gone with its folder, or is in the way of the next one, which says so. */
export function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // See above.
  }
}

function withFile(file: number, use: (file: number) => void): void {
  try {
    use(file)
  } finally {
    closeSync(file)
  }
}
