-- The first jobs of the queue `:QUEUE` that this worker may run now.
select jobs.id, jobs.job_queue_id, jobs.priority, jobs.run_at
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.is_available = true
   and jobs.job_queue_id = :QUEUE
   \ir is_runnable.sql
 order by jobs.priority, jobs.run_at, jobs.id
 limit %(per_queue)s::bigint
