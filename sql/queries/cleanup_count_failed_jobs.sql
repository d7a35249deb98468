-- The number of permanently failed jobs that no worker locks.
select count(*)
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.locked_at is null
   and jobs.attempts >= jobs.max_attempts
