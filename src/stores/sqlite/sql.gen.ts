// Made by scripts/gen.mjs from src/stores/sqlite/sql/*.sql. Edit those, then: npm run gen

export interface Script {
  readonly sha1: string
  readonly sql: string
}

export interface Scripts {
  readonly create: Script
  readonly drop: Script
  readonly free: Script
  readonly guard: Script
  readonly keep: Script
  readonly list: Script
  readonly page: Script
  readonly read: Script
  readonly schemaVersion: Script
  readonly schema: Script
  readonly swap: Script
  readonly takeAt: Script
  readonly take: Script
  readonly touch: Script
}

export const scripts: Scripts = {
  create: {
    sha1: '4387e35ca73166d236f132f08941d08827875bf0',
    sql: 'INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us)\nVALUES (:name, :now, :capacity, :now + :tokens - 1, 0, :id, :owner, :weight, :now, :tokens, :now + :ttl)\nON CONFLICT (name) DO NOTHING\nRETURNING token',
  },
  drop: {
    sha1: '9a2b568901f3184950a0e99877f2613f7e6ce831',
    sql: 'DELETE FROM holdfast_locks\nWHERE name IN (SELECT value FROM json_each(:names)) AND claim IS NULL AND queue IS NULL AND fence < :now - :idle',
  },
  free: {
    sha1: 'a52819c89e9be0b22822db6ed5067bc8b419d35e',
    sql: 'UPDATE holdfast_locks SET\nversion = version + 1, claim = NULL, owner = NULL, weight = 0, token = 0, tokens = 0, expires_us = 0\nWHERE name = :name AND claim = :id AND queue IS NULL AND expires_us > :now',
  },
  guard: {
    sha1: '7ea53af1f0dce0415821bfeefebe47bc55cd0332',
    sql: 'SELECT \'=\' || name AS name, version, capacity, fence, waiting, \'=\' || claim AS claim, \'=\' || owner AS owner, weight, token, tokens,\nexpires_us, \'=\' || queue AS queue, :now AS now\nFROM holdfast_locks WHERE name IN (SELECT value FROM json_each(:names))',
  },
  keep: {
    sha1: 'dd5748c78881b4554d12ef04ba610439158eec08',
    sql: 'UPDATE holdfast_locks SET version = version + 1, expires_us = :now + :ttl\nWHERE name IN (SELECT value FROM json_each(:names)) AND claim IN (SELECT value FROM json_each(:ids))\nAND expires_us > :now\nRETURNING claim, waiting',
  },
  list: {
    sha1: 'fe3282e78bde946d127c05585204154dfe81aec7',
    sql: 'SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now AS now\nFROM holdfast_locks\nWHERE name >= :prefix AND name > :cursor AND substr(name, 1, length(:prefix)) = :prefix\nAND (expires_us > :now OR queue IS NOT NULL)\nORDER BY name LIMIT :limit',
  },
  page: {
    sha1: '808ce6760b838a77c25b24f3f069060d5e37f5e6',
    sql: 'SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now AS now\nFROM holdfast_locks WHERE name > :cursor ORDER BY name LIMIT :limit',
  },
  read: {
    sha1: '21e7ea088b827063450588018e7b6b390da88a57',
    sql: 'SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now AS now\nFROM holdfast_locks WHERE name IN (SELECT value FROM json_each(:names))',
  },
  schemaVersion: {
    sha1: '7e0b6b75bcc0a1a5216a1322d7f1b8c82b9d71ad',
    sql: 'SELECT sql FROM sqlite_master WHERE type = \'table\' AND name = :table',
  },
  schema: {
    sha1: '73d9356c0ec60ae9b704dfc09db5ec80b33b8763',
    sql: 'CREATE TABLE IF NOT EXISTS holdfast_locks ( /* holdfast schema 1 */\nname       TEXT NOT NULL PRIMARY KEY,\nversion    INTEGER NOT NULL,\ncapacity   INTEGER NOT NULL,\nfence      INTEGER NOT NULL,\nwaiting    INTEGER NOT NULL,\nclaim      TEXT,\nowner      TEXT,\nweight     INTEGER NOT NULL,\ntoken      INTEGER NOT NULL,\ntokens     INTEGER NOT NULL,\nexpires_us INTEGER NOT NULL,\nqueue      TEXT\n) WITHOUT ROWID',
  },
  swap: {
    sha1: '6d00dfa7418ee5a8e6f97add964f4c5bf46beb76',
    sql: 'UPDATE holdfast_locks SET\nversion = version + 1, capacity = :capacity, fence = :fence, waiting = :waiting, claim = :claim, owner = :owner,\nweight = :weight, token = :token, tokens = :tokens, expires_us = :expires, queue = :queue\nWHERE name = :name AND version = :version\nRETURNING 1',
  },
  takeAt: {
    sha1: '41c72297a258090f70bb52fe61a5352e8df462c2',
    sql: 'UPDATE holdfast_locks SET\nversion = version + 1,\ncapacity = :capacity,\nfence = :fence,\nclaim = :id,\nowner = :owner,\nweight = :weight,\ntoken = :token,\ntokens = :tokens,\nexpires_us = :now + :ttl\nWHERE name = :name AND queue IS NULL AND expires_us <= :now AND MAX(fence + 1, :now) = :token',
  },
  take: {
    sha1: '349306983a180c2180a31f719e60f0f79b463da9',
    sql: 'UPDATE holdfast_locks SET\nversion = version + 1,\ncapacity = :capacity,\nfence = MAX(fence + 1, :now) + :tokens - 1,\nclaim = :id,\nowner = :owner,\nweight = :weight,\ntoken = MAX(fence + 1, :now),\ntokens = :tokens,\nexpires_us = :now + :ttl\nWHERE name = :name AND queue IS NULL AND expires_us <= :now\nRETURNING token',
  },
  touch: {
    sha1: '31817f9ba2312dc4995e7a4c810865f62de78651',
    sql: 'INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, weight, token, tokens, expires_us)\nVALUES (:name, :now, 0, 0, 0, 0, 0, 0, 0) ON CONFLICT (name) DO NOTHING\nRETURNING 1',
  },
}
