-- Lock the jobs and then the queues of these workers in order of their ids, as settling does.
with locked as materialized (
  select jobs.id, jobs.locked_by
   \ir parts/from_locked_jobs.sql
),
jobs as materialized (
  select jobs.id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(array(select locked.id from locked where locked.locked_by = any(%(worker_ids)s::text[])))
     and jobs.locked_by = any(%(worker_ids)s::text[])
   order by jobs.id
     for update
),
held as materialized (
  select count(*) as jobs from jobs
)
select queues.id
  from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
 cross join held
 where queues.locked_by = any(%(worker_ids)s::text[])
   and held.jobs >= 0
 order by queues.id
   for update of queues
