// The tools that people build with, each at one version, in a cache folder of the user's and never in the lockfile.
import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** Found from everywhere below the toolbox. */
const TOOLS = {
  ...(process.platform === 'linux' && process.arch === 'x64'
    ? {
        '@deno/linux-x64-glibc': '2.9.6',
        '@oven/bun-linux-x64': '1.4.4',
        '@cloudflare/workerd-linux-64': '1.20261110.1',
      }
    : {}),
  '@nestjs/common': '12.5.0',
  '@nestjs/core': '12.5.0',
  '@nestjs/platform-express': '12.5.0',
  '@nestjs/schedule': '12.0.2',
  '@nestjs/terminus': '12.1.0',
  '@nestjs/testing': '12.1.1',
  '@rollup/plugin-commonjs': '29.0.3',
  '@rollup/plugin-json': '6.1.0',
  '@rollup/plugin-node-resolve': '16.0.3',
  '@types/jest': '30.0.0',
  '@types/node': '20.19.43',
  bentocache: '1.6.1',
  'cache-manager': '7.2.9',
  esbuild: '0.28.2',
  express: '5.3.0',
  fastify: '5.12.8',
  jest: '30.5.2',
  keyv: '6.1.0',
  next: '16.4.6',
  react: '19.3.1',
  'react-dom': '19.3.1',
  'reflect-metadata': '0.2.2',
  rollup: '4.68.3',
  rxjs: '7.8.2',
  'ts-jest': '29.4.15',
  typescript: '5.9.3',
  vite: '8.3.8',
  webpack: '5.112.2',
}
/** Found only by programs that are to have them: drivers, and what brings drivers along. */
const DRIVERS = {
  '@agendajs/postgres-backend': '3.0.6',
  agenda: '6.2.6',
  bullmq: '6.7.0',
  croner: '11.0.0',
  ioredis: '5.11.1',
  mysql2: '3.24.5',
  'node-cron': '4.6.0',
  pg: '8.23.1',
  // Version 11 and later need Node 22.
  'pg-boss': '10.4.2',
  redis: '5.12.1',
}

const INSTALL_MS = 900_000

/** The folder, filled if need be: tools in it, drivers in `with-drivers`. */
export function toolbox() {
  const key = createHash('sha256')
    .update(JSON.stringify([TOOLS, DRIVERS]))
    .digest('hex')
    .slice(0, 12)
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'holdfast')
  const home = join(cache, `fit-${key}`)
  if (existsSync(home)) return home
  // Made beside and moved into place: another process may be doing the same.
  const making = `${home}.${process.pid}`
  try {
    install(making, TOOLS)
    install(join(making, 'with-drivers'), DRIVERS)
    mkdirSync(join(making, 'bare'))
    renameSync(making, home)
  } catch (error) {
    if (!existsSync(home)) throw error
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
  return home
}

function install(folder, dependencies) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }))
  const args = ['install', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], timeout: INSTALL_MS })
}

/**
 * A project of a user's: the packed package is installed, and nothing of this repository can be found from it.
 * @param {string} home the toolbox
 * @param {'bare' | 'with-drivers'} kind
 * @param {string} packed the unpacked package
 */
export function project(home, kind, packed) {
  const folder = mkdtempSync(join(home, kind, 'project-'))
  cpSync(packed, join(folder, 'node_modules/holdfast'), { recursive: true })
  const path = (name) => join(folder, name)
  return {
    home,
    folder,
    path,
    /** Writes files, by name. */
    files(files) {
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(path(name)), { recursive: true })
        writeFileSync(path(name), typeof content === 'string' ? content : JSON.stringify(content))
      }
    },
    /** Runs a program of a tool's package with Node. */
    tool: (file, args, env, below = '.') =>
      run(process.execPath, [join(home, 'node_modules', file), ...args], { cwd: path(below), env }),
    /** Runs a program of the project where it is. */
    node: (file, env) => run(process.execPath, [path(file)], { cwd: folder, env }),
    /** Runs what a bundler made where there is nothing else. */
    async alone(entry, env) {
      const elsewhere = mkdtempSync(join(tmpdir(), 'holdfast-alone-'))
      try {
        cpSync(dirname(path(entry)), elsewhere, { recursive: true })
        const file = join(elsewhere, entry.split('/').at(-1))
        return await run(process.execPath, [file], { cwd: elsewhere, env })
      } finally {
        rmSync(elsewhere, { recursive: true, force: true })
      }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

const RUN_MS = 120_000

/** What a program printed; the error's message when it fails. */
export function run(command, args, { cwd, env } = {}) {
  return new Promise((resolve, reject) => {
    const options = { cwd, env: { ...process.env, ...env }, timeout: RUN_MS, encoding: 'utf8' }
    execFile(command, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error([stdout, stderr].filter(Boolean).join('\n').trim() || error.message))
    })
  })
}
