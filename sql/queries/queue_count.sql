-- How many jobs wait in one named queue, and how many of them are due: an exact count, for an operator who asked for it.
-- The queue is looked up first, so that our own index of queues leads to its jobs and nothing else is read.
select
  count(*),
  count(*) filter (where jobs.run_at <= now())
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
where jobs.is_available = true
  and jobs.job_queue_id = (
        select queues.id from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues where queues.queue_name = %(name)s::text
      )
