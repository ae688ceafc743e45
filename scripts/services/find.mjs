// Where a server program comes from: this machine, else its package manager, else Docker, else a clear answer.
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

import { aptInstall, canApt } from './apt.mjs'
import { dockerAnswers, inDocker } from './docker.mjs'

/**
 * @typedef {object} Program
 * @property {string} name what people call it, and how `services.mjs install` knows it
 * @property {string} command
 * @property {string[]} [paths] folders to look into besides PATH
 * @property {string[]} apt packages of Debian and Ubuntu
 * @property {string} brew formula, for the message
 * @property {string} [image] for Docker
 */

const SBIN = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/opt/homebrew/bin']

/**
 * A folder with other programs to run the tests on, which win over the machine's own. They become whom they have to be, in
 * whatever root they live, by themselves. scripts/matrix.mjs makes such folders.
 */
const CHOSEN = process.env.HOLDFAST_PROGRAMS

/** @returns {string | undefined} the full path in the folder of chosen programs */
export function chosen(/** @type {string} */ name) {
  const path = CHOSEN === undefined ? undefined : join(CHOSEN, name)
  return path !== undefined && existsSync(path) ? path : undefined
}

/** @returns {string | undefined} the full path of a command */
export function locate(/** @type {{ command: string, paths?: string[] }} */ { command, paths = [] }) {
  const first = CHOSEN === undefined ? [] : [CHOSEN]
  const folders = [...first, ...(process.env.PATH ?? '').split(delimiter), ...SBIN, ...paths]
  return folders.map((folder) => join(folder, command)).find(isProgram)
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/**
 * How to run a program: `command` with `prefix` before its own arguments. Installs it if that is possible.
 * @param {Program} program
 * @param {{ dir?: string, env?: Record<string, string> }} [forContainer] what a container has to be given
 */
export async function find(program, forContainer = {}) {
  const installed = locate(program) ?? (await install(program))
  if (installed !== undefined) return { command: installed, prefix: [] }
  if (program.image !== undefined && dockerAnswers()) return inDocker(program, forContainer)
  throw new Error(howToInstall([program]))
}

async function install(program) {
  if (!canApt()) return undefined
  await aptInstall(program, () => locate(program) !== undefined)
  return locate(program)
}

/** Whether {@link find} has a way to go, without going it. */
export function obtainable(/** @type {Program} */ program) {
  return locate(program) !== undefined || canApt() || (program.image !== undefined && dockerAnswers())
}

/** One message for everything that is missing, and what can be done without it. */
export function howToInstall(/** @type {Program[]} */ missing) {
  const list = (pick) => [...new Set(missing.flatMap(pick))].join(' ')
  return [
    `Not found, and not installable from here: ${missing.map(({ command }) => command).join(', ')}.`,
    `  Debian, Ubuntu:  sudo apt-get install ${list(({ apt }) => apt)}`,
    `  macOS:           brew install ${list(({ brew }) => brew)}`,
    '  elsewhere:       put the programs on PATH, or start Docker (on Linux it is used by itself)',
    'The tests that need no servers: npm run test:fast',
  ].join('\n')
}
