// Made by scripts/gen.mjs from src/stores/mysql/sql/*.sql. Edit those, then: npm run gen

export interface Script {
  readonly sha1: string
  readonly sql: string
}

export interface Scripts {
  readonly create: Script
  readonly drop: Script
  readonly free: Script
  readonly guardFree: Script
  readonly guard: Script
  readonly isolationSetting: Script
  readonly isolation: Script
  readonly keep: Script
  readonly kept: Script
  readonly list: Script
  readonly page: Script
  readonly read: Script
  readonly schemaVersion: Script
  readonly schema: Script
  readonly seize: Script
  readonly swapQueues: Script
  readonly swap: Script
  readonly take: Script
  readonly touch: Script
}

export const scripts: Scripts = {
  create: {
    sha1: '5478a3f44e878417b1d56dae26f3e71994830cdb',
    sql: 'INSERT INTO holdfast_locks\n(name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us)\nVALUES\n(:name, :now, :capacity, :now + :tokens - 1, 0, :id, :owner, :weight, LAST_INSERT_ID(:now), :tokens, :now + :ttl)',
  },
  drop: {
    sha1: 'f0ed99fb8103d62fa89be4b49c3aa9b7c9212659',
    sql: 'DELETE holdfast_locks FROM holdfast_locks FORCE INDEX (PRIMARY)\nWHERE name IN (:names) AND claim IS NULL AND queue IS NULL AND expires_us <= :now AND fence < :now - :idle',
  },
  free: {
    sha1: 'a52819c89e9be0b22822db6ed5067bc8b419d35e',
    sql: 'UPDATE holdfast_locks SET\nversion = version + 1, claim = NULL, owner = NULL, weight = 0, token = 0, tokens = 0, expires_us = 0\nWHERE name = :name AND claim = :id AND queue IS NULL AND expires_us > :now',
  },
  guardFree: {
    sha1: 'eb9a891feb6175c6229a31df11151f0b8dee77c6',
    sql: 'SELECT name FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name = :guard LIMIT 1 FOR UPDATE SKIP LOCKED',
  },
  guard: {
    sha1: 'd39168e12549a93a91e4f4be813c32b55a155e99',
    sql: 'SELECT name, version FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name IN (:guards) ORDER BY name\nLIMIT 18446744073709551615 LOCK IN SHARE MODE',
  },
  isolationSetting: {
    sha1: 'ad4f480b55840028973c4191ba46e4316851cbbf',
    sql: 'SHOW VARIABLES LIKE \'innodb_snapshot_isolation\'',
  },
  isolation: {
    sha1: '1ea442ef6db64c0fde66a9133f611559eccf1c32',
    sql: 'SELECT CAST(@@innodb_snapshot_isolation AS SIGNED) LIMIT 1',
  },
  keep: {
    sha1: '74571d0828977bd02855e12264ad9fe0946e5369',
    sql: 'UPDATE holdfast_locks FORCE INDEX (PRIMARY) SET version = version + 1, expires_us = LAST_INSERT_ID(:now) + :ttl\nWHERE name IN (:names) AND claim IN (:ids) AND expires_us > :now',
  },
  kept: {
    sha1: '125a6c6870982582ae651c905679d31fd82749be',
    sql: 'SELECT claim, waiting FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name IN (:names) AND claim IN (:ids) AND expires_us = :expires\nLIMIT 18446744073709551615',
  },
  list: {
    sha1: '26a984d9f332a6fc9e184838fb7dc3dadce890df',
    sql: 'SELECT name, version, capacity, fence, waiting, claim, CAST(owner AS BINARY), weight, token, tokens, expires_us,\nCAST(queue AS BINARY), :now\nFROM holdfast_locks\nWHERE name >= :prefix AND name > :cursor AND LEFT(name, LENGTH(:prefix)) = :prefix\nAND (expires_us > :now OR queue IS NOT NULL)\nORDER BY name LIMIT :limit',
  },
  page: {
    sha1: 'd44235e5d1008ebf7a83992249012f07ff554b23',
    sql: 'SELECT name, version, capacity, fence, waiting, claim, CAST(owner AS BINARY), weight, token, tokens, expires_us,\nCAST(queue AS BINARY), :now\nFROM holdfast_locks WHERE name > :cursor ORDER BY name LIMIT :limit',
  },
  read: {
    sha1: '16b5e70643fc7d7298a007797a2125927594c1da',
    sql: 'SELECT name, version, capacity, fence, waiting, claim, CAST(owner AS BINARY), weight, token, tokens, expires_us,\nCAST(queue AS BINARY), :now\nFROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name IN (:names)\nLIMIT 18446744073709551615',
  },
  schemaVersion: {
    sha1: '919396e7c1c6b97d1ca60c30a55c2e4ec90f4654',
    sql: 'SELECT CAST(COALESCE(:schema, DATABASE()) AS BINARY), (\nSELECT CAST(table_comment AS BINARY) FROM information_schema.tables\nWHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table\n)\nLIMIT 1',
  },
  schema: {
    sha1: 'ff32f9a6c029b3946a91a861bcc7fffadc1a3e25',
    sql: 'CREATE TABLE IF NOT EXISTS holdfast_locks (\nname       VARBINARY(512) NOT NULL PRIMARY KEY,\nversion    BIGINT         NOT NULL COMMENT \'grows with every change\',\ncapacity   BIGINT         NOT NULL COMMENT \'weight that can be held at once\',\nfence      BIGINT         NOT NULL COMMENT \'the last token given\',\nwaiting    INT            NOT NULL COMMENT \'claims in line\',\nclaim      VARBINARY(255) NULL     COMMENT \'the first holder\',\nowner      VARCHAR(255)   CHARACTER SET utf8mb4 NULL COMMENT \'the first holder, in words\',\nweight     BIGINT         NOT NULL,\ntoken      BIGINT         NOT NULL COMMENT \'its fencing token, the first of a block\',\ntokens     INT            NOT NULL,\nexpires_us BIGINT         NOT NULL COMMENT \'when its lease ends\',\nqueue      MEDIUMTEXT     CHARACTER SET utf8mb4 NULL COMMENT \'further holders, waiters, withdrawn claims\'\n) ENGINE = InnoDB COMMENT = \'holdfast schema 1\'',
  },
  seize: {
    sha1: 'da1f3165ec930c6d2e411e894e524818b6363c6d',
    sql: 'UPDATE holdfast_locks AS g JOIN holdfast_locks AS l ON l.name = :name AND l.version = :version\nSET\ng.version = g.version + 1,\nl.version = l.version + 1, l.capacity = :capacity, l.fence = :fence, l.waiting = :waiting, l.claim = :claim,\nl.owner = :owner, l.weight = :weight, l.token = :token, l.tokens = :tokens, l.expires_us = :expires, l.queue = :queue\nWHERE g.name = :guard',
  },
  swapQueues: {
    sha1: '49115c3e67a05c7446d1292bc443ef91cf151da5',
    sql: 'UPDATE holdfast_locks FORCE INDEX (PRIMARY) SET version = version + 1, queue = ELT(FIELD(name, :names), :queues)\nWHERE name IN (:names) AND version = CAST(ELT(FIELD(name, :names), :versions) AS SIGNED)',
  },
  swap: {
    sha1: '258682624a6b3ba0b5721a3ab79b2ad5480b18d2',
    sql: 'UPDATE holdfast_locks SET\nversion = version + 1, capacity = :capacity, fence = :fence, waiting = :waiting, claim = :claim, owner = :owner,\nweight = :weight, token = :token, tokens = :tokens, expires_us = :expires, queue = :queue\nWHERE name = :name AND version = :version',
  },
  take: {
    sha1: '1ea043e6cbfd1a0c57dd0e214d724d7c03793ef3',
    sql: 'UPDATE holdfast_locks SET\ntoken = LAST_INSERT_ID(GREATEST(fence + 1, :now)),\nfence = GREATEST(fence + 1, :now) + :tokens - 1,\ntokens = :tokens,\nversion = version + 1,\ncapacity = :capacity,\nclaim = :id,\nowner = :owner,\nweight = :weight,\nexpires_us = :now + :ttl\nWHERE name = :name AND queue IS NULL AND claim IS NULL',
  },
  touch: {
    sha1: '6c526ca18d839d909117fcadb5db674d3a47c0c8',
    sql: 'INSERT IGNORE INTO holdfast_locks (name, version, capacity, fence, waiting, weight, token, tokens, expires_us)\nVALUES (:name, :now, 0, 0, 0, 0, 0, 0, 0)',
  },
}
