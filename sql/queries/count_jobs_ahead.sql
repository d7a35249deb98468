-- How many jobs of its queue are due before this one, of the first `most` that come before it at all.
-- It needs our own index of queue heads.
select
  count(*) filter (where ahead.run_at <= now()),
  count(*) = %(most)s
from (
  select jobs.run_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.is_available = true
     and jobs.job_queue_id = %(queue_id)s::int
     and (jobs.priority, jobs.run_at, jobs.id) < (
           select own.priority, own.run_at, own.id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as own
            where own.id = %(id)s::bigint
         )
   order by jobs.priority, jobs.run_at, jobs.id
   limit %(most)s
) as ahead
