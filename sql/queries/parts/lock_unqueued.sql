-- The next jobs of one priority without a queue, row by row locked, without those that others lock.
-- `:COLUMN` is how they are found again.
select
  jobs.:COLUMN as row,
  jobs.priority,
  jobs.run_at,
  \ir payload_bytes.sql
  as bytes
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.is_available = true
   and jobs.job_queue_id is null
   and jobs.priority = unqueued_priorities.priority
   and jobs.run_at >= unqueued_priorities.since
   \ir parts/is_runnable.sql
 order by jobs.run_at
 limit %(limit)s::bigint
   for update skip locked
