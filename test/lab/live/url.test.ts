import { describe, expect, it } from 'vitest'

import { by, endpointsOf, hostsOf, isLoopback } from '../../../src/lab/live/url.ts'

describe('The address of a store', () => {
  it.each([
    ['redis://user:p%40ss@localhost/2', true],
    ['postgres://127.0.0.1:5433/db?sslmode=disable', true],
    ['zookeeper://[::1]:2181,localhost/locks', true],
    ['sqlite:locks.db', true],
    ['holdfast+unix:/run/holdfast.sock', true],
    ['redis://10.0.0.7', false],
    ['zookeeper://localhost,zk2.example.org', false],
    ['redis://localhost.example.org', false],
    ['redis://localhost@example.org', false],
    ['postgres://localhost/db?host=db.example.org', false],
    ['postgres:///db?host=db.example.org', false],
    ['postgres://localhost/db?host=/var/run/postgresql', true],
    ['mysql://localhost/db?socketPath=/run/mysqld.sock', true],
  ])('%s: on this machine alone is %s', (url, local) => {
    expect(isLoopback(url)).toBe(local)
  })

  it('names its servers, with the port that is usual where none is given', () => {
    expect(endpointsOf('redis://:secret@localhost/2')).toEqual([{ host: 'localhost', port: 6379 }])
    expect(endpointsOf('zookeeper://a:2182,b/locks?ttl=1000')).toEqual([
      { host: 'a', port: 2182 },
      { host: 'b', port: 2181 },
    ])
    expect(hostsOf('redis+cluster://a:1,b:2')).toEqual(['a', 'b'])
  })

  it('cannot be led through a proxy where hosts are checked or told by the servers', () => {
    for (const url of [
      'rediss://localhost',
      'redis+sentinel://a,b/m',
      'redis+cluster://a',
      'sqlite:a.db',
      'memory:',
      // Their drivers go by what stands behind the question mark: a proxy would see nothing of them.
      'postgres://localhost/db?host=/var/run/postgresql',
      'postgres://localhost/db?sslmode=disable&port=5433',
      'postgres://localhost/db?sslmode=verify-full',
      'mysql://localhost/db?socketPath=/run/mysqld.sock',
      'mysql://localhost/db?ssl={"rejectUnauthorized":true}',
    ])
      expect(endpointsOf(url)).toBeUndefined()
  })

  it('keeps everything else on another way', () => {
    const way = [{ host: '127.0.0.1', port: 4000 }]
    expect(by('redis://:secret@localhost:6380/2?x=1', way)).toBe('redis://:secret@127.0.0.1:4000/2?x=1')
  })
})
