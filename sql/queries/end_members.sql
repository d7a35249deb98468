-- Take note that jobs have ended for which others wait; null: check all waiting jobs that were not checked for a while.
-- Returns how many jobs wait no longer.
select :GRAPHILE_WORKER_SCHEMA._private_gw_end_members(
         %(ids)s::bigint[], kept_tasks => %(tasks)s::text[], kept_seconds => %(keep_seconds)s::double precision[]
       )
