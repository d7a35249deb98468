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

-- Add a job unless one was added under this key within its time, and return it, or the one that was added then; `is_new`
-- is whether it was added.
-- Of two sessions that add at the same time, one waits for the other's transaction.
-- A plan made while the table is empty reads the whole table, and a session keeps it: hence `enable_seqscan`. Without it,
-- 30,000 jobs that one call added took over two minutes.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_add_unique(
  given json, unique_key text, period_seconds double precision,
  out job :GRAPHILE_WORKER_SCHEMA._private_jobs, out is_new boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $gw$
declare
  v_earlier record;
begin
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier (key, job_id, added_at, expires_at)
  values (unique_key, 0, clock_timestamp(), clock_timestamp() + make_interval(secs => period_seconds))
  on conflict (key) do update
     set added_at = excluded.added_at, expires_at = excluded.expires_at
   where earlier.expires_at <= clock_timestamp();
  is_new := found;
  if is_new then
    job := :GRAPHILE_WORKER_SCHEMA.add_job(
      identifier => given->>'task',
      payload => given->'payload',
      queue_name => given->>'queue_name',
      run_at => coalesce((given->>'run_at')::timestamptz, now() + make_interval(secs => (given->>'delay')::float8)),
      max_attempts => (given->>'max_attempts')::integer,
      job_key => given->>'job_key',
      priority => (given->>'priority')::integer,
      flags => case
        when given->>'flags' is not null then array(select json_array_elements_text(given->'flags'))
      end
    );
    update :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier
       set job_id = job.id
     where earlier.key = unique_key;
    return;
  end if;
  select earlier.job_id, earlier.added_at into v_earlier
    from :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier
   where earlier.key = unique_key;
  select jobs.* into job from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.id = v_earlier.job_id;
  if not found then
    -- It has ended: this is what is known of it.
    job.id := v_earlier.job_id;
    job.payload := given->'payload';
    job.priority := coalesce((given->>'priority')::integer, 0);
    job.run_at := v_earlier.added_at;
    job.attempts := 0;
    job.max_attempts := coalesce((given->>'max_attempts')::integer, 25);
    job.created_at := v_earlier.added_at;
    job.updated_at := v_earlier.added_at;
    job.key := given->>'job_key';
    job.revision := 0;
  end if;
end;
$gw$;
