-- Drop a partition of history whose rows are all expired, or delete expired rows of the default partition.
-- Returns the name of that table, or null when nothing is expired.
select :GRAPHILE_WORKER_SCHEMA._private_gw_expire_history()
