-- Whether there is such a setting (MariaDB; it is on from 11.6 on).
-- params: none
-- returns: a row with its name and its value; none
SHOW VARIABLES LIKE 'innodb_snapshot_isolation'
