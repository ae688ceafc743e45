// A server program inside a container that shares the machine's network, user and folder, so that everything else
// (ports, data on disk, readiness) is the same as for a program installed here.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'

let answers

// Only on Linux does a container share the loopback, and so the ports, of the machine.
export function dockerAnswers() {
  answers ??= process.platform === 'linux' && docker(['version', '--format', '{{.Server.Version}}'])
  return answers
}

/**
 * @param {import('./find.mjs').Program} program
 * @param {{ dir?: string, env?: Record<string, string> }} given what the container shares with its starter
 */
export function inDocker({ name, command, image }, { dir, env = {} }) {
  if (!docker(['image', 'inspect', image])) {
    process.stderr.write(`holdfast: ${command} is missing; fetching the Docker image ${image}\n`)
    execFileSync('docker', ['pull', image], { stdio: ['ignore', process.stderr, process.stderr] })
  }
  const container = `holdfast-${name}-${randomBytes(6).toString('hex')}`
  const user = `${process.getuid()}:${process.getgid()}`
  const mount = dir === undefined ? [] : ['--volume', `${dir}:${dir}`, '--workdir', dir]
  const variables = Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`])
  const options = ['--rm', '--name', container, '--network', 'host', '--user', user, ...mount, ...variables]
  return { command: 'docker', prefix: ['run', ...options, '--entrypoint', command, image], container }
}

function docker(args) {
  try {
    execFileSync('docker', args, { stdio: 'ignore', timeout: 10_000 })
    return true
  } catch {
    return false
  }
}
