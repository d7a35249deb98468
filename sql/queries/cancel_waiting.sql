-- Drop these waiting jobs, and those that wait for them; the jobs that they wait for stay.
-- One that was added again under its key waits no longer.
-- Rows are locked in the order in which the ends of other jobs lock them.
with cancelled as materialized (
  select locked.job_id
    from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as locked
    join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs on jobs.id = locked.job_id
   where locked.job_id = any(%(ids)s::bigint[])
     and locked.released_at is null
     and jobs.id = any(%(ids)s::bigint[])
     and jobs.run_at = 'infinity'
   order by locked.job_id
     for update
),
ended as materialized (
  select :GRAPHILE_WORKER_SCHEMA._private_gw_end_members(
           '{}'::bigint[], array(select cancelled.job_id from cancelled), reason => %(reason)s::text
         )
)
select cancelled.job_id from ended cross join cancelled order by cancelled.job_id
