import { describe, expect, it } from 'vitest'

import { lockfileFaults, repairLockfile } from '../../scripts/lockfile.mjs'

const faulty = (): Parameters<typeof lockfileFaults>[0] => ({
  packages: {
    '': {},
    bench: { optionalDependencies: { 'tool-win32-x64': '1.0.0' } },
    'bench/node_modules/tool-win32-x64': { version: '1.0.0' },
    'node_modules/tool': {
      dev: true,
      resolved: 'https://mirror.example/tool.tgz',
      optionalDependencies: {
        'tool-linux-x64-gnu': '2.0.0',
        'tool-linux-arm64-musl': '2.0.0',
        'tool-wasm32-wasi': '2.0.0',
      },
    },
    'node_modules/tool-linux-x64-gnu': { version: '2.0.0' },
    'node_modules/bench': { resolved: 'bench' },
  },
})

describe('the lock file check', () => {
  it('sees download addresses and native parts that are not listed', () => {
    expect(lockfileFaults(faulty())).toEqual([
      'tool-linux-arm64-musl@2.0.0 is not listed',
      'tool-wasm32-wasi@2.0.0 is not listed',
      'node_modules/tool has a download address',
    ])
  })

  it('repairs both, for the platform that the name says', () => {
    const lock = faulty()
    repairLockfile(lock)
    expect(lockfileFaults(lock)).toEqual([])
    expect(lock.packages['node_modules/bench']).toEqual({ resolved: 'bench' })
    expect(lock.packages['node_modules/tool-wasm32-wasi']).toMatchObject({ cpu: ['wasm32'], optional: true })
    expect(lock.packages['node_modules/tool-linux-arm64-musl']).toEqual({
      version: '2.0.0',
      cpu: ['arm64'],
      dev: true,
      libc: ['musl'],
      optional: true,
      os: ['linux'],
    })
  })
})
