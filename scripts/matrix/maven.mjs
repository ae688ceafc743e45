// Java servers and clients that Debian has only in older versions: Maven fetches them, from wherever it is set up to.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { aptInstall, canApt } from '../services/apt.mjs'
import { locate } from '../services/find.mjs'
import { step } from './steps.mjs'

const MAVEN = { command: 'mvn', apt: ['maven'] }
const MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'

export function whyNoMaven() {
  if (locate({ command: 'java' }) === undefined) return 'java is missing'
  return locate(MAVEN) !== undefined || canApt() ? undefined : 'mvn is missing'
}

/** @param {import('./entries.mjs').Entry} entry */
export async function makeJars(entry, { dir, log }) {
  if (locate(MAVEN) === undefined) await aptInstall(MAVEN, () => locate(MAVEN) !== undefined)
  const jars = join(dir, 'jars')
  const bin = join(dir, 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(dir, 'pom.xml'), pomOf(entry.maven))
  const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${jars}`, '-DincludeScope=runtime']
  await step(
    `${entry.id}: ${entry.maven.length} artifacts`,
    ['mvn', '-q', '-B', '-f', join(dir, 'pom.xml'), ...goal],
    {
      log,
      minutes: 10,
    },
  )
  const wrapper = join(bin, 'zkServer.sh')
  // Called as the package's own: start-foreground <file>. The last -cp wins.
  writeFileSync(wrapper, `#!/bin/sh\nshift\nexec java $JVMFLAGS -cp '${jars}/*' ${MAIN} "$@"\n`)
  chmodSync(wrapper, 0o755)
}

function pomOf(artifacts) {
  const dependency = (artifact) => {
    const [group, name, version] = artifact.split(':')
    // One logger only: the one that writes to where its caller can see it.
    const without = '<exclusion><groupId>ch.qos.logback</groupId><artifactId>*</artifactId></exclusion>'
    return `<dependency><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version><exclusions>${without}</exclusions></dependency>`
  }
  return [
    '<project><modelVersion>4.0.0</modelVersion>',
    '<groupId>holdfast</groupId><artifactId>matrix</artifactId><version>1</version>',
    `<dependencies>${artifacts.map(dependency).join('\n')}</dependencies></project>`,
  ].join('\n')
}
