-- The table of locks, for SQLite 3.35 and later.
-- params: none
-- returns: nothing
-- One row per name, which remembers the last token for as long as the name is used, and an hour more. All times are microseconds since 1970 in UTC. The
-- comment inside stays in the database's own record of the table, where the version is read from.
CREATE TABLE IF NOT EXISTS holdfast_locks ( /* holdfast schema 1 */
  name       TEXT NOT NULL PRIMARY KEY,
  version    INTEGER NOT NULL,
  capacity   INTEGER NOT NULL,
  fence      INTEGER NOT NULL,
  waiting    INTEGER NOT NULL,
  claim      TEXT,
  owner      TEXT,
  weight     INTEGER NOT NULL,
  token      INTEGER NOT NULL,
  tokens     INTEGER NOT NULL,
  expires_us INTEGER NOT NULL,
  queue      TEXT
) WITHOUT ROWID
