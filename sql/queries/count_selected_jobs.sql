-- How many jobs a selection means, and up to which id: an action ends there, whatever is added while it runs.
select count(*),
       coalesce(max(jobs.id), 0),
       count(*) filter (where jobs.locked_at >= now() - interval '4 hours'),
       count(*) filter (where jobs.locked_at is not null),
       count(*) filter (where jobs.locked_at is null and jobs.last_error is null and jobs.attempts < jobs.max_attempts)
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where :SELECTION
