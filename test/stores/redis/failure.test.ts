import { describe, expect, it } from 'vitest'

import { failed } from '../../../src/stores/redis/failure.ts'

const answerTo = (message: string, more: object = {}) => failed(Object.assign(new Error(message), more))

describe('a failed command', () => {
  it.each([
    'NOAUTH Authentication required.',
    'WRONGPASS invalid username-password pair or user is disabled.',
    "NOPERM this user has no permissions to run the 'evalsha' command",
    "ERR unknown command 'evalsha'",
    'WRONGTYPE Operation against a key holding the wrong kind of value',
    'ERR user_script:7: Script attempted to access nonexistent global variable',
    'HFNOMARK the mark of durable fencing is missing',
  ])('is not to be repeated after "%s"', (message) => {
    expect(answerTo(message)).toMatchObject({ kind: 'unknown', retryable: false })
  })

  it.each([
    'connect ECONNREFUSED 127.0.0.1:6379',
    'LOADING Redis is loading the dataset in memory',
    "READONLY You can't write against a read only replica. script: abc, on @user_script:7.",
    "OOM command not allowed when used memory > 'maxmemory'. script: abc, on @user_script:7.",
    'ERR Script killed by user with SCRIPT KILL. script: abc, on @user_script:7.',
    'ERR Error running script (call to f_abc): @user_script:7: Script killed by user with SCRIPT KILL...',
    'CLUSTERDOWN The cluster is down',
    'TRYAGAIN Multiple keys request during rehashing of slot',
    'MISCONF Redis is configured to save RDB snapshots',
    'Connection is closed.',
  ])('may be repeated after "%s"', (message) => {
    expect(answerTo(message).retryable).toBeUndefined()
  })

  // ioredis says so of a connection that is closed, whatever the reason; the option that it names has nothing to do with it.
  it('for want of a connection says who may have closed it', () => {
    const { cause } = answerTo("Stream isn't writeable and enableOfflineQueue options is false")
    expect(String(cause)).toContain('maxclients')
  })

  // In the words of Redis 6.2, 7.0, and 8 with Valkey.
  it.each([
    "NOPERM this user has no permissions to run the 'evalsha' command",
    "ERR The user executing the script can't publish to the channel mentioned in the command script: abc, on @user_script:7.",
    'ERR ACL failure in script: No permissions to access a channel script: abc, on @user_script:7.',
  ])('for want of a right says where the rights are listed: "%s"', (message) => {
    const { cause, retryable } = answerTo(message)
    expect(String(cause)).toContain('lists the rights that a user needs')
    expect(retryable).toBe(false)
  })

  it('tells the message and the code, and nothing else that the driver put into its error', () => {
    const secrets = {
      command: { name: 'evalsha', args: ['session.1'] },
      client: { password: 'hunter2' },
      code: 'ECONNRESET',
    }
    const { cause } = answerTo('read ECONNRESET', secrets)
    expect({ ...(cause as object) }).toEqual({ code: 'ECONNRESET' })
  })

  it('does not quote the arguments of a command that the server does not know', () => {
    const { cause } = answerTo(
      "ERR unknown command 'evalsha', with args beginning with: 'abc' '3' 'hf:{x}' 'session.1' ",
    )
    expect(String(cause)).toMatch(
      /^Error: ERR unknown command 'evalsha' \(locks need scripts: .*redis\+sentinel/,
    )
    expect(String(cause)).not.toContain('session.1')
  })

  it('says something also when the driver says nothing', () => {
    const both = new AggregateError(
      [new Error('connect ECONNREFUSED ::1:6379'), new Error('connect ECONNREFUSED 127.0.0.1:6379')],
      '',
    )
    expect(String(failed(both).cause)).toMatch(/::1.*127\.0\.0\.1/)
    expect(String(failed(undefined).cause)).toMatch(/without an error/)
  })

  it('says what the last node of a Cluster said', () => {
    const last = new Error('self-signed certificate')
    expect(answerTo('Failed to refresh slots cache.', { lastNodeError: last }).cause).toMatchObject({
      message: 'Failed to refresh slots cache. self-signed certificate',
    })
  })
})
