-- Where the table is, and the comment on it, which tells its version.
-- params: :schema (null: the current database), :table
-- returns: the database; the comment, null when there is no such table
SELECT CAST(COALESCE(:schema, DATABASE()) AS BINARY), (
  SELECT CAST(table_comment AS BINARY) FROM information_schema.tables
  WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table
)
LIMIT 1
