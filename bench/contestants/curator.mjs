// Curator's InterProcessMutex, from Java. Its loops run in the Java process itself: from here they would be measured
// together with the pipe.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'

import { locate } from '../../scripts/services/find.mjs'

const here = existsSync('/usr/share/java/curator-recipes.jar') && locate({ command: 'javac' }) !== undefined

/** @type {import('./index.mjs').Contestant[]} */
export const curator = [
  {
    id: 'curator',
    family: 'curator',
    label: 'Curator (Java)',
    store: 'zookeeper',
    needs: ['curator'],
    only: ['w1', 'w2', 'w15'],
    role: 'peer',
    config: 'InterProcessMutex, default',
    missing: here ? undefined : 'needs a JDK and libcurator-recipes-java',
    async open({ urls }) {
      const [command, ...args] = JSON.parse(urls.curator)
      const child = spawn(command, [...args, new URL(urls.zookeeper).host], {
        stdio: ['pipe', 'pipe', 'ignore'],
      })
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      const answer = async () => {
        const { value, done } = await lines.next()
        if (done) throw new Error('the Java process ended')
        return JSON.parse(value)
      }
      await answer()
      return {
        async loops({ mode, size, ms, name }) {
          child.stdin.write(`${mode} ${size} ${Math.round(ms)} ${encodeURIComponent(name)}\n`)
          return { requests: NaN, ...(await answer()) }
        },
        close: () => child.stdin.end(),
      }
    },
  },
]
