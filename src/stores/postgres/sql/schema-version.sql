-- Where the table is, and the comment on it, which tells its version.
-- params: :table (quoted, with its schema if that was given)
-- returns: the schema of the table, or the one to make it in; the comment, null when there is no such table
-- By the search path that the connection began with: what somebody has set since (a tenant's schema) is another one on every
-- connection. Only a table that is nowhere on that is looked for where the connection looks now.
WITH here AS MATERIALIZED (
  SELECT to_regclass(:table) AS id
), path AS MATERIALIZED (
  SELECT here.id, set_config('search_path', reset_val, true) AS first
  FROM here CROSS JOIN pg_settings WHERE pg_settings.name = 'search_path'
), found AS MATERIALIZED (
  SELECT COALESCE(to_regclass(:table || left(first, 0)), id) AS id, current_schema() AS begins FROM path
)
SELECT COALESCE(nspname, begins), CASE WHEN found.id IS NOT NULL THEN COALESCE(obj_description(found.id, 'pg_class'), '') END
FROM found LEFT JOIN pg_class ON pg_class.oid = found.id LEFT JOIN pg_namespace ON pg_namespace.oid = relnamespace
