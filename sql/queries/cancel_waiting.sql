-- Drop these waiting jobs, and those that wait for them; the jobs that they wait for stay.
-- Rows are locked in the order in which the ends of other jobs lock them.
with cancelled as materialized (
  select locked.job_id
    from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as locked
   where locked.job_id = any(%(ids)s::bigint[])
     and locked.released_at is null
   order by locked.job_id
     for update
),
ended as materialized (
  select :GRAPHILE_WORKER_SCHEMA._private_gw_end_members(
           '{}'::bigint[], array(select cancelled.job_id from cancelled)
         )
)
select cancelled.job_id from ended cross join cancelled order by cancelled.job_id
