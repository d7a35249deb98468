-- Jobs that are unique for a time. A row stays until its time is over, also when its job has ended before.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_unique (
  key text constraint gw_unique_pkey primary key,
  job_id bigint not null,
  added_at timestamptz not null,
  expires_at timestamptz not null
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_unique enable row level security;

create index if not exists gw_unique_expires_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_unique (expires_at);

-- Add a job unless one was added under this key within its time, and return it, or the one that was added then.
-- Of two sessions that add at the same time, one waits for the other's transaction.
-- A plan made while the table is empty reads the whole table, and a session keeps it: hence `enable_seqscan`. Without it,
-- 30,000 jobs that one call added took over two minutes.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_add_unique(
  job json, unique_key text, period_seconds double precision
)
returns :GRAPHILE_WORKER_SCHEMA._private_jobs
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $gw$
declare
  v_job :GRAPHILE_WORKER_SCHEMA._private_jobs;
  v_earlier record;
begin
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier (key, job_id, added_at, expires_at)
  values (unique_key, 0, clock_timestamp(), clock_timestamp() + make_interval(secs => period_seconds))
  on conflict (key) do update
     set added_at = excluded.added_at, expires_at = excluded.expires_at
   where earlier.expires_at <= clock_timestamp();
  if found then
    v_job := :GRAPHILE_WORKER_SCHEMA.add_job(
      identifier => job->>'task',
      payload => job->'payload',
      queue_name => job->>'queue_name',
      run_at => coalesce((job->>'run_at')::timestamptz, now() + make_interval(secs => (job->>'delay')::float8)),
      max_attempts => (job->>'max_attempts')::integer,
      job_key => job->>'job_key',
      priority => (job->>'priority')::integer,
      flags => case
        when job->>'flags' is not null then array(select json_array_elements_text(job->'flags'))
      end
    );
    update :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier
       set job_id = v_job.id
     where earlier.key = unique_key;
    return v_job;
  end if;
  select earlier.job_id, earlier.added_at into v_earlier
    from :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier
   where earlier.key = unique_key;
  select jobs.* into v_job from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.id = v_earlier.job_id;
  if not found then
    -- It has ended: this is what is known of it.
    v_job.id := v_earlier.job_id;
    v_job.payload := job->'payload';
    v_job.priority := coalesce((job->>'priority')::integer, 0);
    v_job.run_at := v_earlier.added_at;
    v_job.attempts := 0;
    v_job.max_attempts := coalesce((job->>'max_attempts')::integer, 25);
    v_job.created_at := v_earlier.added_at;
    v_job.updated_at := v_earlier.added_at;
    v_job.key := job->>'job_key';
    v_job.revision := 0;
  end if;
  return v_job;
end;
$gw$;
