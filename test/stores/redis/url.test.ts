import { describe, expect, it } from 'vitest'

import { parseUrl } from '../../../src/stores/redis/url.ts'

describe('a Redis URL', () => {
  it.each([
    [
      'redis://localhost',
      { kind: 'server', tls: false, hosts: [{ host: 'localhost', port: 6379 }], database: 0 },
    ],
    [
      'rediss://ann:s%2Fecret@db.example:6380/3',
      {
        kind: 'server',
        tls: true,
        hosts: [{ host: 'db.example', port: 6380 }],
        user: 'ann',
        password: 's/ecret',
        database: 3,
      },
    ],
    [
      'redis://:secret@[::1]:7',
      { kind: 'server', tls: false, hosts: [{ host: '::1', port: 7 }], password: 'secret', database: 0 },
    ],
    ['redis://h?db=2', { kind: 'server', tls: false, hosts: [{ host: 'h', port: 6379 }], database: 2 }],
    [
      'redis+sentinel://:pw@a,b:5000,c/main/4',
      {
        kind: 'sentinel',
        tls: false,
        hosts: [
          { host: 'a', port: 26_379 },
          { host: 'b', port: 5_000 },
          { host: 'c', port: 26_379 },
        ],
        password: 'pw',
        master: 'main',
        database: 4,
      },
    ],
    [
      'rediss+cluster://a:7000,b',
      {
        kind: 'cluster',
        tls: true,
        hosts: [
          { host: 'a', port: 7_000 },
          { host: 'b', port: 6379 },
        ],
        database: 0,
      },
    ],
  ])('%s says where the server is', (url, address) => {
    expect(parseUrl(url)).toEqual({ ...address, options: {} })
  })

  it('says how the store is to be', () => {
    const query = 'prefix=app&driver=redis&fencing=durable&replicas=2&replicaTimeout=50&db=3'
    expect(parseUrl(`redis://h?${query}`)).toMatchObject({
      database: 3,
      options: { prefix: 'app', driver: 'redis', fencing: 'durable', replicas: 2, replicaTimeout: 50 },
    })
  })

  it.each([
    ['http://h', /must look like/],
    ['redis://a,b', /redis\+sentinel or a redis\+cluster/],
    ['redis+sentinel://a,b', /lacks the primary's name/],
    ['redis+cluster://a/3', /more in its path/],
    ['redis+cluster://a?db=1', /a cluster has only one/],
    ['redis://h/one', /not a number/],
    ['redis://h:99999', /host that cannot be read/],
    ['redis://%zz@h', /begins no code/],
    ['redis://', /must look like/],
    ['redis://h?prefx=app', /no Redis URL has: prefx/],
    ['redis://h?sentinelPassword=secret', /password for sentinels, and no sentinels/],
    ['redis+sentinel://h/m?sentinelUser=ann', /user for sentinels, and no password/],
    ['redis://h?driver=memcached', /neither ioredis nor redis/],
  ])('%s is refused', (url, problem) => {
    expect(() => parseUrl(url)).toThrow(problem)
  })

  it('is never shown with its password', () => {
    expect(() => parseUrl('redis://ann:hunter2@a,b')).toThrow(/^(?!.*hunter2)/)
    expect(() => parseUrl('redis+sentinel://a?sentinelPassword=hunter2')).toThrow(/^(?!.*hunter2)/)
  })
})
