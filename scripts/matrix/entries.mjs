// The servers that the tests are run on besides those of this machine: one row each. The tests are the repository's own.

const REDIS = [
  'test/conformance/redis.test.ts',
  'test/conformance/quorum.test.ts',
  'test/stores/redis',
  'test/stores/quorum',
]
const MYSQL = ['test/conformance/mysql.test.ts', 'test/stores/mysql']
const POSTGRES = ['test/conformance/postgres.test.ts', 'test/stores/postgres']
const MEMCACHED = ['test/conformance/memcached.test.ts', 'test/stores/memcached']
const ZOOKEEPER = ['test/conformance/zookeeper.test.ts', 'test/stores/zookeeper']

const REDIS_PATH = '/usr/bin/redis-server'
const VALKEY_PATH = '/usr/bin/valkey-server'

/**
 * @typedef {object} Entry
 * @property {string} id
 * @property {string} store the store that is tested
 * @property {string} server what the table calls it
 * @property {string[]} tests files and folders
 * @property {string} [release] of Debian; then with:
 * @property {string[]} [packages]
 * @property {Record<string, string>} [programs] by the name under which services look for it: where it is in the root; `*`
 *   stands for a version
 * @property {boolean} [unprivileged] it refuses to run as root
 * @property {string[]} [folders] that it wants to be there
 * @property {string[]} [maven] artifacts instead, `group:name:version`; run by the machine's own Java
 */

/** @type {Entry[]} */
export const ENTRIES = [
  redis('redis-8.0', 'Redis', { release: 'trixie', packages: ['redis-server'], path: REDIS_PATH }),
  redis('redis-8.0-sid', 'Redis', { release: 'sid', packages: ['redis-server'], path: REDIS_PATH }),
  redis('valkey-8.1', 'Valkey', { release: 'trixie', packages: ['valkey-server'], path: VALKEY_PATH }),
  redis('valkey-9.1', 'Valkey', { release: 'sid', packages: ['valkey-server'], path: VALKEY_PATH }),
  {
    id: 'mysql-9.7',
    store: 'MySQL',
    server: 'MySQL',
    release: 'sid',
    packages: ['mysql-server-core'],
    programs: { mysqld: '/usr/sbin/mysqld' },
    folders: ['/var/lib/mysql-files'],
    tests: MYSQL,
  },
  {
    id: 'mariadb-11.8',
    store: 'MySQL',
    server: 'MariaDB',
    release: 'sid',
    packages: ['mariadb-server'],
    programs: { mariadbd: '/usr/sbin/mariadbd', 'mariadb-install-db': '/usr/bin/mariadb-install-db' },
    tests: MYSQL,
  },
  {
    id: 'postgres-18',
    store: 'PostgreSQL',
    server: 'PostgreSQL',
    release: 'sid',
    packages: ['postgresql'],
    programs: { initdb: '/usr/lib/postgresql/*/bin/initdb', postgres: '/usr/lib/postgresql/*/bin/postgres' },
    unprivileged: true,
    tests: POSTGRES,
  },
  {
    id: 'memcached-1.6.45',
    store: 'memcached',
    server: 'memcached',
    release: 'sid',
    packages: ['memcached'],
    programs: { memcached: '/usr/bin/memcached' },
    tests: MEMCACHED,
  },
  {
    id: 'zookeeper-3.9',
    store: 'ZooKeeper',
    server: 'ZooKeeper',
    maven: [
      'org.apache.zookeeper:zookeeper:3.9.5',
      'org.apache.curator:curator-recipes:5.9.0',
      // What the server's own package lists as provided by somebody else.
      'io.dropwizard.metrics:metrics-core:4.1.12.1',
      'org.xerial.snappy:snappy-java:1.1.10.5',
      'org.slf4j:slf4j-simple:2.0.13',
    ],
    tests: ZOOKEEPER,
  },
]

/** @returns {Entry} */
function redis(id, server, { release, packages, path }) {
  return { id, store: 'Redis', server, release, packages, programs: { 'redis-server': path }, tests: REDIS }
}
