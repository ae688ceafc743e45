-- The table of locks, for PostgreSQL 12 and later.
-- params: none
-- returns: nothing
-- One row per name, which remembers the last token for as long as the name is used, and an hour more. All times are microseconds since 1970 in UTC, taken
-- from the server's clock. Half of each page stays free, so that updates need not touch the index.
CREATE TABLE IF NOT EXISTS holdfast_locks (
  name       text COLLATE "C" NOT NULL PRIMARY KEY,
  version    bigint NOT NULL,
  capacity   bigint NOT NULL,
  fence      bigint NOT NULL,
  waiting    integer NOT NULL,
  claim      text,
  owner      text,
  weight     bigint NOT NULL,
  token      bigint NOT NULL,
  tokens     integer NOT NULL,
  expires_us bigint NOT NULL,
  queue      text
) WITH (fillfactor = 50);
COMMENT ON TABLE holdfast_locks IS 'holdfast schema 1'
