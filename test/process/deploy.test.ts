import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'

import { readConfig } from '../../src/cli/serve/config.ts'
import { startServer } from '../../src/server/index.ts'
import { openapi } from '../../src/server/openapi/index.ts'

const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url))
const read = (path: string): string => readFileSync(join(deploy, path), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'holdfast-deploy-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const has = (program: string): boolean => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0

/** What a server shows, with samples of everything that has labels. */
async function metricsPage(): Promise<string> {
  const server = await startServer({ listen: '127.0.0.1:0', state: null })
  const headers = { 'content-type': 'application/json', 'holdfast-request': '1' }
  const post = async (path: string, body: unknown): Promise<unknown> =>
    (await fetch(`${server.http}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  try {
    const { lease } = (await post('acquire', { name: 'a' })) as { lease: string }
    await post('renew', { name: 'a', lease })
    await fetch(`${server.http}/v1/locks`, { headers: { origin: 'https://evil.example' } })
    return await (await fetch(`${server.http}/v1/metrics`)).text()
  } finally {
    await server.close()
  }
}

const NAME = /holdfast_\w+/g
const plain = (name: string): string => name.replace(/_(bucket|sum|count)$/, '')
const typesOf = (page: string): string[] => [...page.matchAll(/^# TYPE (\w+)/gm)].map(([, name = '']) => name)

describe('dashboard, rules and docs', () => {
  it.each(['grafana/holdfast.json', 'prometheus/rules.yaml', 'prometheus/rules.test.yaml'])(
    '%s names only metrics that there are, with labels that they have',
    async (file) => {
      const page = await metricsPage()
      const known = new Set(typesOf(page))
      const named = new Set((read(file).match(NAME) ?? []).map(plain))
      expect(named.size).toBeGreaterThan(2)
      for (const name of named) expect([...known]).toContain(name)
      for (const [, name = '', labels = ''] of read(file).matchAll(/(holdfast_\w+)\{([^}]*)\}/g)) {
        const named = [...labels.matchAll(/(\w+)\s*=~?/g)].map(([, label = '']) => label)
        for (const label of named.filter((one) => one !== 'instance'))
          expect(page).toMatch(new RegExp(`^${plain(name)}.*\\b${label}="`, 'm'))
      }
      for (const [, group = '', name = ''] of read(file).matchAll(
        /by \(([\w, ]+)\) \(\w+\((holdfast_\w+)/g,
      )) {
        for (const label of group.split(', ').filter((one) => one !== 'instance'))
          expect(page).toMatch(new RegExp(`^${name}.*\\b${label}="`, 'm'))
      }
    },
  )

  it('show every metric that there is', async () => {
    const docs = readFileSync(join(deploy, '../docs/server.md'), 'utf8')
    for (const name of typesOf(await metricsPage())) {
      expect(docs).toContain(`\`${name}`)
      expect(read('grafana/holdfast.json')).toContain(name)
    }
  })

  it('the dashboard is one that Grafana can load: panels with their own numbers and places', () => {
    const { panels, uid } = JSON.parse(read('grafana/holdfast.json')) as {
      uid: string
      panels: { id: number; gridPos: { x: number; y: number; w: number }; targets: { expr: string }[] }[]
    }
    expect(uid).toBe('holdfast')
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    expect(new Set(panels.map(({ gridPos: { x, y } }) => `${x},${y}`)).size).toBe(panels.length)
    for (const { gridPos, targets } of panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
      expect(targets.length).toBeGreaterThan(0)
    }
  })

  it.skipIf(!has('promtool'))('promtool finds the rules well-formed, and they fire when they should', () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'rules.test.yaml'], {
      cwd: join(deploy, 'prometheus'),
      encoding: 'utf8',
    })
    expect([status, stdout + stderr]).toEqual([0, expect.stringContaining('SUCCESS')])
  })
})

interface Container {
  readonly image: string
  readonly args?: readonly string[]
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly volumeMounts: readonly { readonly name: string }[]
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}
interface Manifest {
  readonly kind: string
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: {
    readonly replicas?: number
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[]
    readonly template?: {
      readonly spec: {
        readonly securityContext: Readonly<Record<string, unknown>>
        readonly containers: readonly Container[]
        readonly initContainers?: readonly Container[]
        readonly volumes: readonly { readonly name: string }[]
      }
    }
  }
}

function manifests(file: string): readonly Manifest[] {
  return parseAllDocuments(read(file)).map((one) => {
    expect(one.errors).toEqual([])
    return one.toJS() as Manifest
  })
}

function configOf(text: string): ReturnType<typeof readConfig> {
  const path = join(folder, 'config.json')
  writeFileSync(path, text, { mode: 0o600 })
  return readConfig(path)
}

describe('Kubernetes', () => {
  const files = readdirSync(join(deploy, 'kubernetes')).map((file) => `kubernetes/${file}`)

  it.each(files)('%s has a config that serve takes', (file) => {
    const texts = manifests(file).flatMap(({ kind, data }) =>
      kind === 'ConfigMap' ? [data?.['config.json']] : [],
    )
    expect(texts).toHaveLength(1)
    expect(configOf(texts[0] ?? '')).toMatchObject({ listen: '0.0.0.0:7420', log: { format: 'json' } })
  })

  it.each(files)(
    '%s runs without root and with nothing writable but its volumes, and probes what there is',
    (file) => {
      const [workload] = manifests(file).filter(({ spec }) => spec?.template !== undefined)
      const pod = workload?.spec?.template?.spec
      expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001 })
      const volumes = [
        ...(pod?.volumes ?? []).map(({ name }) => name),
        ...(workload?.spec?.volumeClaimTemplates ?? []).map(({ metadata }) => metadata.name),
      ]
      for (const one of [...(pod?.containers ?? []), ...(pod?.initContainers ?? [])]) {
        expect(one.securityContext).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
        })
        for (const { name } of one.volumeMounts) expect(volumes).toContain(name)
      }
      const [server] = pod?.containers ?? []
      expect(server?.args).toEqual(['serve', '--config', '/etc/holdfast/config.json'])
      for (const probe of [server?.livenessProbe, server?.readinessProbe]) {
        expect(Object.keys(openapi['paths'] as object)).toContain(probe?.httpGet.path)
        expect(server?.ports?.map(({ name }) => name)).toContain(probe?.httpGet.port)
      }
    },
  )

  it('runs a server with its own memory once: two would be two sets of locks', () => {
    expect(manifests('kubernetes/holdfast.yaml')).toContainEqual(
      expect.objectContaining({
        kind: 'StatefulSet',
        spec: expect.objectContaining({ replicas: 1 }) as unknown,
      }),
    )
  })
})

describe('systemd and containers', () => {
  it('have a config that serve takes', () => {
    expect(configOf(read('config.json'))).toHaveProperty('tls')
  })

  it('lets the server see which boot of the machine this is', () => {
    expect(read('systemd/holdfast.service')).not.toMatch(/^ProcSubset=pid/m)
  })

  it.skipIf(!has('systemd-analyze'))('systemd finds nothing wrong with the unit', () => {
    const unit = join(deploy, 'systemd/holdfast.service')
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })

  it('the image runs as nobody in particular, behind a first process that waits for orphans', () => {
    const text = read('Dockerfile')
    expect(text).toContain('\nUSER 10001:10001\n')
    expect(text).toContain('\nENTRYPOINT ["/usr/bin/tini", "--", "holdfast"]\n')
    expect(text).toContain('\nCMD ["serve", "--config", "/etc/holdfast/config.json"]\n')
  })

  it('the image and the unit have every folder that the config writes to', () => {
    const { state, audit, log } = configOf(read('config.json'))
    const folders = [state, audit?.file, log?.file].filter((file) => typeof file === 'string').map(dirname)
    expect(folders).toContain('/var/log/holdfast')
    const lines = read('Dockerfile').split('\n')
    const made = lines.find((line) => line.includes('install -d -o 10001 -g 10001'))?.split(' ')
    const volumes = lines.find((line) => line.startsWith('VOLUME '))?.split(' ')
    const unit = read('systemd/holdfast.service')
    for (const folder of folders) {
      expect(made).toContain(folder)
      expect(volumes).toContain(folder)
      const directory = folder.startsWith('/var/log/') ? 'LogsDirectory' : 'StateDirectory'
      expect(unit).toContain(`\n${directory}=${basename(folder)}\n`)
    }
  })

  const possible =
    process.platform === 'linux' &&
    process.getuid?.() === 0 &&
    has('tini') &&
    has('nsenter') &&
    spawnSync('unshare', ['--fork', '--pid', '--mount', 'true']).status === 0
  it.skipIf(!possible)(
    'what the image runs keeps what it says, in namespaces of its own',
    () => {
      expect(existsSync(join(deploy, '../dist/cli/start.cjs'))).toBe(true)
      const { status, stdout, stderr } = spawnSync(
        join(deploy, 'try-container.sh'),
        [join(folder, 'container')],
        {
          encoding: 'utf8',
          timeout: 110_000,
        },
      )
      expect([status, stderr]).toEqual([0, ''])
      expect(stdout.match(/^ok: /gm)).toHaveLength(10)
    },
    120_000,
  )
})
