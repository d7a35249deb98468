-- Use up the attempts of jobs; one that a worker locks is skipped until its lock is four hours old.
create or replace function :GRAPHILE_WORKER_SCHEMA.permanently_fail_jobs(
  job_ids bigint[],
  error_message text default null
) returns setof :GRAPHILE_WORKER_SCHEMA._private_jobs
language sql set search_path = pg_catalog, pg_temp as $gw$
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set last_error = coalesce(error_message, 'Manually marked as failed'),
         attempts = jobs.max_attempts,
         updated_at = now()
   where jobs.id = any(job_ids)
     and (jobs.locked_at is null or jobs.locked_at < now() - interval '4 hours')
  returning jobs.*;
$gw$;
