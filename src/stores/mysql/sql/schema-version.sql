-- The comment of the table, which tells its version.
-- params: :schema (null: the current database), :table
-- returns: the comment; no row when there is no such table
SELECT CAST(table_comment AS BINARY) FROM information_schema.tables
WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :table
