-- The comment of the table, which tells its version.
-- params: :table (quoted, with its schema)
-- returns: the comment; no row when there is no such table
SELECT COALESCE(obj_description(oid, 'pg_class'), '') FROM pg_class WHERE oid = to_regclass(:table)
