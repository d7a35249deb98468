--! breaking
-- add_job and reschedule_jobs take plain integers: PostgreSQL never turns a literal number into a smallint argument.

drop function if exists :GRAPHILE_WORKER_SCHEMA.add_job(
  text, json, text, timestamptz, smallint, text, smallint, text[], text
);
drop function if exists :GRAPHILE_WORKER_SCHEMA.reschedule_jobs(bigint[], timestamptz, smallint, smallint, smallint);

create or replace function :GRAPHILE_WORKER_SCHEMA.add_job(
  identifier text,
  payload json default null,
  queue_name text default null,
  run_at timestamptz default null,
  max_attempts integer default null,
  job_key text default null,
  priority integer default null,
  flags text[] default null,
  job_key_mode text default 'replace'
) returns :GRAPHILE_WORKER_SCHEMA.jobs
language plpgsql as $gw$
declare
  v_spec :GRAPHILE_WORKER_SCHEMA.job_spec;
  v_job :GRAPHILE_WORKER_SCHEMA.jobs;
begin
  if job_key is not null and job_key_mode not in ('replace', 'preserve_run_at', 'unsafe_dedupe') then
    raise exception using
      errcode = 'GWBKM',
      message = 'Invalid job_key_mode value, expected ''replace'', ''preserve_run_at'' or ''unsafe_dedupe''.';
  end if;

  -- A key that exists already, in whatever state its job is, only has its revision counted up by unsafe_dedupe.
  if job_key_mode = 'unsafe_dedupe' then
    update :GRAPHILE_WORKER_SCHEMA.jobs
       set revision = jobs.revision + 1, updated_at = now()
     where jobs.key = add_job.job_key
    returning * into v_job;
    if found then
      return v_job;
    end if;
  end if;

  v_spec := row(identifier, payload, queue_name, run_at, max_attempts::smallint, job_key, priority::smallint, flags);
  select *
    into v_job
    from :GRAPHILE_WORKER_SCHEMA.add_jobs(array[v_spec], job_key_mode = 'preserve_run_at');
  return v_job;
end;
$gw$;

create or replace function :GRAPHILE_WORKER_SCHEMA.reschedule_jobs(
  job_ids bigint[],
  run_at timestamptz default null,
  priority integer default null,
  attempts integer default null,
  max_attempts integer default null
) returns setof :GRAPHILE_WORKER_SCHEMA.jobs
language sql as $gw$
  update :GRAPHILE_WORKER_SCHEMA.jobs
     set run_at = coalesce(reschedule_jobs.run_at, jobs.run_at),
         priority = coalesce(reschedule_jobs.priority::smallint, jobs.priority),
         attempts = coalesce(reschedule_jobs.attempts::smallint, jobs.attempts),
         max_attempts = coalesce(reschedule_jobs.max_attempts::smallint, jobs.max_attempts),
         updated_at = now()
   where jobs.id = any(job_ids)
     and (jobs.locked_at is null or jobs.locked_at < now() - interval '4 hours')
  returning jobs.*;
$gw$;
