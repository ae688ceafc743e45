// Apache Curator, the locks of the Java world: a class path to compile and run against.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { aptInstall, canApt } from './apt.mjs'
import { chosen, locate } from './find.mjs'

const run = promisify(execFile)
const JARS = '/usr/share/java'
const NEEDED = [
  'curator-recipes',
  'curator-framework',
  'curator-client',
  'zookeeper',
  'zookeeper-jute',
  'guava',
  'slf4j-api',
  'slf4j-nop',
].map((name) => join(JARS, `${name}.jar`))

/** @type {import('./find.mjs').Program} */
export const program = {
  name: 'curator',
  command: 'javac',
  apt: ['libcurator-recipes-java', 'default-jdk-headless'],
  brew: 'openjdk',
}

/** The jars of another version, where the server is another one too. */
const chosenJars = chosen('../jars')
const isThere = () =>
  locate(program) !== undefined && (chosenJars !== undefined || NEEDED.every((jar) => existsSync(jar)))

export function curatorObtainable() {
  return isThere() || canApt()
}

/**
 * Compiles Java sources against Curator into a folder.
 * @returns {Promise<(main: string, ...args: string[]) => string[]>} the command line that runs one of the classes
 */
export async function curator({ sources, dir }) {
  if (!isThere()) {
    if (canApt()) await aptInstall(program, isThere)
    if (!isThere()) throw new Error(`Curator needs javac and ${NEEDED.join(', ')}`)
  }
  const classPath = chosenJars === undefined ? NEEDED.join(':') : join(chosenJars, '*')
  await run(locate(program), ['-d', dir, '-cp', classPath, ...sources])
  const java = locate({ command: 'java' })
  return (main, ...args) => [java, '-Xmx128m', '-cp', `${classPath}:${dir}`, main, ...args]
}
