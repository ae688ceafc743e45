/** What each store is called where people read it. */
const NAMES = {
  memory: 'memory',
  redis: 'Redis',
  mysql: 'MariaDB',
  postgres: 'PostgreSQL',
  sqlite: 'SQLite',
  memcached: 'memcached',
  holdfast: 'the lock server',
  zookeeper: 'ZooKeeper',
}

export const storeName = (store) => NAMES[store] ?? store
