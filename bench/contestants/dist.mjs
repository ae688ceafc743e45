import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

// By path, not by name: this workspace is not the package, and what is measured must be what was just built.
// BENCH_DIST names another build, for a comparison of before and after.
const DIST =
  process.env.BENCH_DIST === undefined
    ? new URL('../../dist/', import.meta.url)
    : pathToFileURL(`${resolve(process.env.BENCH_DIST)}/`)

const urlOf = (entry) => new URL(entry, DIST)

export const isBuilt = (entry) => existsSync(urlOf(entry))

/** For what runs as a program of its own. */
export const pathOf = (entry) => fileURLToPath(urlOf(entry))

export const load = (entry) =>
  import(urlOf(entry).href).catch((cause) => {
    throw new Error(`dist/${entry} cannot be loaded; run \`npm run build\` first`, { cause })
  })
