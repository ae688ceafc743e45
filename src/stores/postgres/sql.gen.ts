// Made by scripts/gen.mjs from src/stores/postgres/sql/*.sql. Edit those, then: npm run gen

export interface Script {
  readonly sha1: string
  readonly sql: string
}

export interface Scripts {
  readonly create: Script
  readonly drop: Script
  readonly free: Script
  readonly guardThere: Script
  readonly guard: Script
  readonly keep: Script
  readonly list: Script
  readonly page: Script
  readonly read: Script
  readonly schemaVersion: Script
  readonly schema: Script
  readonly seize: Script
  readonly swap: Script
  readonly take: Script
  readonly touch: Script
}

export const scripts: Scripts = {
  create: {
    sha1: 'f7667cc9d84b5db6d65be1259e2cf28542280672',
    sql: 'INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us)\nSELECT :name, clock.us, CAST(:capacity AS bigint), clock.us + CAST(:tokens AS integer) - 1, 0, :id, :owner,\nCAST(:weight AS bigint), clock.us, CAST(:tokens AS integer), clock.us + CAST(:ttl AS bigint)\nFROM (SELECT :now AS us) AS clock\nON CONFLICT (name) DO NOTHING\nRETURNING token',
  },
  drop: {
    sha1: '4bb33621678414a55bb105fa5ae37e5d81d8103c',
    sql: 'DELETE FROM holdfast_locks WHERE claim IS NULL AND queue IS NULL AND fence < :now - CAST(:idle AS bigint) AND name IN (\nSELECT name FROM holdfast_locks\nWHERE name = ANY(CAST(:names AS text[])) AND claim IS NULL AND queue IS NULL AND fence < :now - CAST(:idle AS bigint)\nORDER BY name FOR UPDATE SKIP LOCKED\n)',
  },
  free: {
    sha1: 'a52819c89e9be0b22822db6ed5067bc8b419d35e',
    sql: 'UPDATE holdfast_locks SET\nversion = version + 1, claim = NULL, owner = NULL, weight = 0, token = 0, tokens = 0, expires_us = 0\nWHERE name = :name AND claim = :id AND queue IS NULL AND expires_us > :now',
  },
  guardThere: {
    sha1: '2194047d84cfc660196155bcc3d9fd57fb752c3d',
    sql: 'SELECT CASE WHEN bool_or(pg_try_advisory_xact_lock(hashtextextended(id, 7525758567302165364))) THEN 0 ELSE 1 END\nFROM unnest(CAST(:ids AS text[])) AS id\nHAVING NOT pg_is_in_recovery()',
  },
  guard: {
    sha1: 'e69fcca6efb7038d7339d41deb1721cad415f273',
    sql: 'WITH claims AS MATERIALIZED (\nSELECT count(pg_advisory_xact_lock_shared(hashtextextended(id, 7525758567302165364))) AS locked\nFROM unnest(CAST(CAST(:ids AS text) AS text[])) AS id\n)\nSELECT \'=\' || name AS name, version, capacity, fence, waiting, \'=\' || claim AS claim, \'=\' || owner AS owner, weight, token, tokens,\nexpires_us, \'=\' || queue AS queue, :now\nFROM holdfast_locks AS l JOIN claims ON claims.locked >= 0\nWHERE name = ANY(CAST(CAST(:names AS text) AS text[])) ORDER BY name FOR KEY SHARE OF l',
  },
  keep: {
    sha1: '16242ff4b8b664d4f58a57def01683b4be87fe95',
    sql: 'WITH mine AS (\nSELECT name FROM holdfast_locks\nWHERE name = ANY(CAST(:names AS text[])) AND claim = ANY(CAST(:ids AS text[]))\nORDER BY name FOR NO KEY UPDATE\n)\nUPDATE holdfast_locks AS l SET version = l.version + 1, expires_us = :now + CAST(:ttl AS bigint)\nFROM mine WHERE l.name = mine.name AND l.claim = ANY(CAST(:ids AS text[])) AND l.expires_us > :now\nRETURNING l.claim, l.waiting',
  },
  list: {
    sha1: '961f1ea6c4032e16ca879baf0d4db7de149bfb3c',
    sql: 'SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now\nFROM holdfast_locks\nWHERE name >= CAST(:prefix AS text) AND name > CAST(:cursor AS text)\nAND left(name, length(CAST(:prefix AS text))) = CAST(:prefix AS text)\nAND (expires_us > :now OR queue IS NOT NULL)\nORDER BY name LIMIT CAST(:limit AS integer)',
  },
  page: {
    sha1: '904a513618f27e972dc885d21354b87aa075f029',
    sql: 'SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now\nFROM holdfast_locks WHERE name > CAST(:cursor AS text) ORDER BY name LIMIT CAST(:limit AS integer)',
  },
  read: {
    sha1: '052b27427fc6b7f6e7557a2e3279ffdf2540ead4',
    sql: 'SELECT name, version, capacity, fence, waiting, claim, owner, weight, token, tokens, expires_us, queue, :now\nFROM holdfast_locks WHERE name = ANY(CAST(:names AS text[]))',
  },
  schemaVersion: {
    sha1: 'e1df26aef06407d15623731db15bfdfc01897378',
    sql: 'WITH here AS MATERIALIZED (\nSELECT to_regclass(:table) AS id\n), path AS MATERIALIZED (\nSELECT here.id, set_config(\'search_path\', reset_val, true) AS first\nFROM here CROSS JOIN pg_settings WHERE pg_settings.name = \'search_path\'\n), found AS MATERIALIZED (\nSELECT COALESCE(to_regclass(:table || left(first, 0)), id) AS id, current_schema() AS begins FROM path\n)\nSELECT COALESCE(nspname, begins), CASE WHEN found.id IS NOT NULL THEN COALESCE(obj_description(found.id, \'pg_class\'), \'\') END\nFROM found LEFT JOIN pg_class ON pg_class.oid = found.id LEFT JOIN pg_namespace ON pg_namespace.oid = relnamespace',
  },
  schema: {
    sha1: '1de990429d465cd51363e6be983a01ac37b9eb81',
    sql: 'CREATE TABLE IF NOT EXISTS holdfast_locks (\nname       text COLLATE "C" NOT NULL PRIMARY KEY,\nversion    bigint NOT NULL,\ncapacity   bigint NOT NULL,\nfence      bigint NOT NULL,\nwaiting    integer NOT NULL,\nclaim      text,\nowner      text,\nweight     bigint NOT NULL,\ntoken      bigint NOT NULL,\ntokens     integer NOT NULL,\nexpires_us bigint NOT NULL,\nqueue      text\n) WITH (fillfactor = 50);\nCOMMENT ON TABLE holdfast_locks IS \'holdfast schema 1\'',
  },
  seize: {
    sha1: 'fdc691b0606b25c530b2251cc865027e4610c69f',
    sql: 'WITH claims AS MATERIALIZED (\nSELECT bool_and(pg_try_advisory_xact_lock(hashtextextended(id, 7525758567302165364))) AS free\nFROM unnest(CAST(:ended AS text[])) AS id\n), swapped AS (\nUPDATE holdfast_locks SET\nversion = version + 1, capacity = CAST(:capacity AS bigint), fence = CAST(:fence AS bigint),\nwaiting = CAST(:waiting AS integer), claim = CAST(:claim AS text), owner = CAST(:owner AS text),\nweight = CAST(:weight AS bigint), token = CAST(:token AS bigint), tokens = CAST(:tokens AS integer),\nexpires_us = CAST(:expires AS bigint), queue = CAST(:queue AS text)\nFROM claims WHERE claims.free AND name = CAST(:name AS text) AND version = CAST(:version AS bigint)\nRETURNING 1\n)\nSELECT (\nSELECT count(pg_notify(told.channel, told.message))\nFROM unnest(CAST(:channels AS text[]), CAST(:messages AS text[])) AS told (channel, message)\n) FROM swapped',
  },
  swap: {
    sha1: 'f3971197898b8b8411f95c36a97c328608852443',
    sql: 'WITH swapped AS (\nUPDATE holdfast_locks SET\nversion = version + 1, capacity = CAST(:capacity AS bigint), fence = CAST(:fence AS bigint),\nwaiting = CAST(:waiting AS integer), claim = CAST(:claim AS text), owner = CAST(:owner AS text),\nweight = CAST(:weight AS bigint), token = CAST(:token AS bigint), tokens = CAST(:tokens AS integer),\nexpires_us = CAST(:expires AS bigint), queue = CAST(:queue AS text)\nWHERE name = CAST(:name AS text) AND version = CAST(:version AS bigint)\nRETURNING 1\n)\nSELECT (\nSELECT count(pg_notify(told.channel, told.message))\nFROM unnest(CAST(:channels AS text[]), CAST(:messages AS text[])) AS told (channel, message)\n) FROM swapped',
  },
  take: {
    sha1: '427de860e1608548f1fb6336006bd7451b8179c8',
    sql: 'UPDATE holdfast_locks SET\nversion = version + 1,\ncapacity = CAST(:capacity AS bigint),\nfence = GREATEST(fence + 1, clock.us) + CAST(:tokens AS integer) - 1,\nclaim = :id,\nowner = :owner,\nweight = CAST(:weight AS bigint),\ntoken = GREATEST(fence + 1, clock.us),\ntokens = CAST(:tokens AS integer),\nexpires_us = clock.us + CAST(:ttl AS bigint)\nFROM (SELECT :now AS us) AS clock\nWHERE name = :name AND queue IS NULL AND claim IS NULL\nRETURNING token',
  },
  touch: {
    sha1: '31817f9ba2312dc4995e7a4c810865f62de78651',
    sql: 'INSERT INTO holdfast_locks (name, version, capacity, fence, waiting, weight, token, tokens, expires_us)\nVALUES (:name, :now, 0, 0, 0, 0, 0, 0, 0) ON CONFLICT (name) DO NOTHING\nRETURNING 1',
  },
}
