-- Change when and how jobs run; null keeps a value, and locked jobs are skipped as in complete_jobs.
create or replace function :GRAPHILE_WORKER_SCHEMA.reschedule_jobs(
  job_ids bigint[],
  run_at timestamptz default null,
  priority integer default null,
  attempts integer default null,
  max_attempts integer default null
) returns setof :GRAPHILE_WORKER_SCHEMA._private_jobs
language sql set search_path = pg_catalog, pg_temp as $gw$
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set run_at = coalesce(reschedule_jobs.run_at, jobs.run_at),
         priority = coalesce(reschedule_jobs.priority::smallint, jobs.priority),
         attempts = coalesce(reschedule_jobs.attempts::smallint, jobs.attempts),
         max_attempts = coalesce(reschedule_jobs.max_attempts::smallint, jobs.max_attempts),
         updated_at = now()
   where jobs.id = any(job_ids)
     and (jobs.locked_at is null or jobs.locked_at < now() - interval '4 hours')
  returning jobs.*;
$gw$;
