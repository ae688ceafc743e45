-- The table of locks, for MySQL 5.7 and later and MariaDB 10.3 and later.
-- params: none
-- returns: nothing
-- One row per name, which remembers the last token for as long as the name is used, and an hour more. The name is bytes, so that no collation decides which
-- names are the same. All times are microseconds since 1970 in UTC, taken from the server's clock.
CREATE TABLE IF NOT EXISTS holdfast_locks (
  name       VARBINARY(512) NOT NULL PRIMARY KEY,
  version    BIGINT         NOT NULL COMMENT 'grows with every change',
  capacity   BIGINT         NOT NULL COMMENT 'weight that can be held at once',
  fence      BIGINT         NOT NULL COMMENT 'the last token given',
  waiting    INT            NOT NULL COMMENT 'claims in line',
  claim      VARBINARY(255) NULL     COMMENT 'the first holder',
  owner      VARCHAR(255)   CHARACTER SET utf8mb4 NULL COMMENT 'the first holder, in words',
  weight     BIGINT         NOT NULL,
  token      BIGINT         NOT NULL COMMENT 'its fencing token, the first of a block',
  tokens     INT            NOT NULL,
  expires_us BIGINT         NOT NULL COMMENT 'when its lease ends',
  queue      MEDIUMTEXT     CHARACTER SET utf8mb4 NULL COMMENT 'further holders, waiters, withdrawn claims'
) ENGINE = InnoDB COMMENT = 'holdfast schema 1'
