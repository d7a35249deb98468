-- Take note that members of groups have ended; null: check all groups that were not checked for a while.
-- Returns how many waiting jobs were added.
select :GRAPHILE_WORKER_SCHEMA._private_gw_end_members(%(ids)s::bigint[])
