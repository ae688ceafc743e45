-- Whether the transaction refuses to lock what has changed since it first read: where isolation-setting.sql finds the setting.
-- params: none
-- returns: 1 or 0
SELECT CAST(@@innodb_snapshot_isolation AS SIGNED) LIMIT 1
