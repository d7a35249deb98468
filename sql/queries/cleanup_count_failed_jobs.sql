-- How many jobs have failed for good and are held by nobody.
select count(*)
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.locked_at is null
   and jobs.attempts >= jobs.max_attempts
