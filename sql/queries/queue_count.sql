-- The exact number of jobs that wait in one named queue, and of those that are due.
-- The queue's id is read first, so that gw's index of queued jobs serves and nothing else is read.
select
  count(*),
  count(*) filter (where jobs.run_at <= now())
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
where jobs.is_available = true
  and jobs.job_queue_id = (
        select queues.id from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues where queues.queue_name = %(name)s::text
      )
