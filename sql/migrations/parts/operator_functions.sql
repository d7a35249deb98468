-- Delete jobs manually as if they had succeeded; one that a worker locks is skipped until its lock is four hours old.
create or replace function :GRAPHILE_WORKER_SCHEMA.complete_jobs(job_ids bigint[])
returns setof :GRAPHILE_WORKER_SCHEMA._private_jobs
language sql set search_path = pg_catalog, pg_temp as $gw$
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(job_ids)
     and (jobs.locked_at is null or jobs.locked_at < now() - interval '4 hours')
  returning jobs.*;
$gw$;

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

-- Release all locks of these workers, which must be dead: what they still run would run twice.
create or replace function :GRAPHILE_WORKER_SCHEMA.force_unlock_workers(worker_ids text[])
returns void
language sql set search_path = pg_catalog, pg_temp as $gw$
  update :GRAPHILE_WORKER_SCHEMA._private_jobs
     set locked_at = null, locked_by = null
   where locked_by = any(worker_ids);
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues
     set locked_at = null, locked_by = null
   where locked_by = any(worker_ids);
$gw$;
