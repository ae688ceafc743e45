import type { Target } from './case.ts'

const NO_LIST = 'memcached cannot say which keys it has'

/**
 * Where the stores of this package do less than a case asks for by design, by their kind. Each of these is on the store's page
 * in the docs.
 */
export const documented: Readonly<Record<string, Pick<Target, 'grace' | 'exceptions'>>> = {
  memcached: {
    // Whole seconds, rounded up, and three more.
    grace: 4500,
    exceptions: {
      'list/pages': NO_LIST,
      'list/changing': NO_LIST,
      'list/prefix': NO_LIST,
      'list/forgets': NO_LIST,
      'list/names': NO_LIST,
      'list/expired': NO_LIST,
      'connection/claim-cut':
        'memcached describes a holder when that one has heard of its grant, so that a grant whose answer was cut off is not shown',
    },
  },
  // A database tells what is done, not what has run out: that is seen with the next sign of life of a waiter.
  postgres: { grace: 2500 },
  zookeeper: {
    exceptions: {
      'renew/longer':
        'A session of ZooKeeper cannot be made longer: a renewal for longer than the claim was made for is refused',
      'process/waiter-killed':
        'ZooKeeper drops the waiters of a dead process when its session ends, which lasts as long as the ttl asks for',
    },
  },
}
