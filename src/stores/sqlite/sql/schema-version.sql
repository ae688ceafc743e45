-- The text that made the table, which tells its version.
-- params: :table
-- returns: the text; no row when there is no such table
SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :table
