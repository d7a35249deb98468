-- Add many jobs in one call; the only function that inserts jobs with replaceable keys.
-- The marker in the body shows `gw migrate` that this is the repaired function, in its fast form: a job added under a key
-- is never lost, however the call races with a claim, a completion, a failure or another add.
create or replace function :GRAPHILE_WORKER_SCHEMA.add_jobs(
  specs :GRAPHILE_WORKER_SCHEMA.job_spec[],
  job_key_preserve_run_at boolean default false
) returns setof :GRAPHILE_WORKER_SCHEMA._private_jobs
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = on as $gw$
declare
  -- gw:add-jobs:3
  v_pending :GRAPHILE_WORKER_SCHEMA.job_spec[] := specs;
  v_keys text[] := array(select spec.job_key from unnest(specs) as spec where spec.job_key is not null);
  v_retired bigint[];
  v_stored bigint;
begin
  -- A session keeps its plans. Those made while no job waited would read the whole table for each key: 3 ms a job beside
  -- 4,000. Without keys a bulk add reads the names of all queues, a sixth faster. The end of the function resets this.
  if cardinality(v_keys) > 0 then
    perform set_config('enable_seqscan', 'off', true);
  end if;

  -- Insert only the missing names: `on conflict` alone would use up an id of the sequence on every call.
  -- Each name is looked up once, not once for each job: a session's later calls run a plan made for few specifications.
  insert into :GRAPHILE_WORKER_SCHEMA._private_tasks (identifier)
    select spec.identifier
      from (select distinct identifier from unnest(specs)) as spec
     where not exists (
       select from :GRAPHILE_WORKER_SCHEMA._private_tasks as known where known.identifier = spec.identifier
     )
  on conflict do nothing;

  insert into :GRAPHILE_WORKER_SCHEMA._private_job_queues (queue_name)
    select spec.queue_name
      from (select distinct queue_name from unnest(specs) where queue_name is not null) as spec
     where not exists (
       select from :GRAPHILE_WORKER_SCHEMA._private_job_queues as known where known.queue_name = spec.queue_name
     )
  on conflict do nothing;

  perform pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":' || array_length(specs, 1)::text || '}');

  -- Without keys there is no conflict. `on conflict` costs each row one more WAL record and 12 % more CPU time.
  if cardinality(v_keys) = 0 then
    return query
      \ir insert_job_specs.sql
      returning jobs.*;
    return;
  end if;

  loop
    -- Wait here for every session that claims, settles or replaces a job with one of our keys, always in the order of id,
    -- so that two calls with the same keys cannot deadlock. From here on no other session changes these rows.
    perform from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
      where jobs.key = any(v_keys)
      order by jobs.id
      for update;

    -- A statement of its own, because it must see what the wait above let happen.
    -- A job that runs, or failed permanently, gives up its key and never runs again; a new job takes the key.
    with retired as (
      update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
         set key = null,
             attempts = jobs.max_attempts,
             updated_at = now()
       where jobs.key = any(v_keys)
         and jobs.is_available is not true
      returning jobs.id
    )
    select array_agg(retired.id) into v_retired from retired;
    \ir mark_retired_jobs.sql

    return query
      \ir insert_job_specs.sql
      \ir replace_waiting_job.sql
      returning jobs.*;
    get diagnostics v_stored = row_count;
    exit when v_stored = cardinality(v_pending);

    -- Some keys came back without a row: another session added the key and a worker claimed that job, both after our
    -- first look. PostgreSQL has locked those rows for us all the same, so they stay claimed and keep their keys until
    -- we end: they are exactly the ones found here, the next pass retires them, and it is the last one.
    v_pending := array(
      select spec
        from unnest(v_pending) as spec
        join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs on jobs.key = spec.job_key
       where jobs.locked_at is not null
    );
    exit when cardinality(v_pending) = 0;
    v_keys := array(select spec.job_key from unnest(v_pending) as spec);
  end loop;
end;
$gw$;

-- Add one job; what a trigger, a psql session or any client in any language calls.
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
) returns :GRAPHILE_WORKER_SCHEMA._private_jobs
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off as $gw$
declare
  v_spec :GRAPHILE_WORKER_SCHEMA.job_spec;
  v_job :GRAPHILE_WORKER_SCHEMA._private_jobs;
begin
  if job_key is not null and job_key_mode not in ('replace', 'preserve_run_at', 'unsafe_dedupe') then
    raise exception using
      errcode = 'GWBKM',
      message = 'Invalid job_key_mode value, expected ''replace'', ''preserve_run_at'' or ''unsafe_dedupe''.';
  end if;

  if job_key is not null and job_key_mode is distinct from 'unsafe_dedupe' then
    v_spec := row(
      identifier, payload, queue_name, run_at, max_attempts::smallint, job_key, priority::smallint, flags
    );
    select *
      into v_job
      from :GRAPHILE_WORKER_SCHEMA.add_jobs(array[v_spec], job_key_mode = 'preserve_run_at');
    return v_job;
  end if;

  -- The caller of a single add waits for it, so from here on statements are few: this takes half the time of `add_jobs`.
  -- Both inserts run though the name is known: their locks keep others from clearing it away before our job is there.
  insert into :GRAPHILE_WORKER_SCHEMA._private_tasks (identifier)
    select add_job.identifier
     where not exists (
       select from :GRAPHILE_WORKER_SCHEMA._private_tasks as known where known.identifier = add_job.identifier
     )
  on conflict do nothing;

  if queue_name is not null then
    insert into :GRAPHILE_WORKER_SCHEMA._private_job_queues (queue_name)
      select add_job.queue_name
       where not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_job_queues as known where known.queue_name = add_job.queue_name
       )
    on conflict do nothing;
  end if;

  -- A task that is deleted in between makes this fail; a join would drop the job silently.
  -- Under `unsafe_dedupe` an existing job stays as it is, whatever its state; counting its revision up is what makes it
  -- come back as a row.
  insert into :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
         (job_queue_id, task_id, payload, run_at, max_attempts, key, priority, flags)
  values (
    case when add_job.queue_name is not null then
      (select queues.id
         from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
        where queues.queue_name = add_job.queue_name)
    end,
    (select tasks.id from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks where tasks.identifier = add_job.identifier),
    coalesce(add_job.payload, '{}'),
    coalesce(add_job.run_at, now()),
    coalesce(add_job.max_attempts, 25)::smallint,
    add_job.job_key,
    coalesce(add_job.priority, 0)::smallint,
    case when add_job.flags is not null then (select jsonb_object_agg(flag, true) from unnest(add_job.flags) as flag) end
  )
  on conflict (key) do update
     set revision = jobs.revision + 1,
         updated_at = now()
  returning * into v_job;

  if v_job.revision = 0 then
    perform pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":1}');
  end if;
  return v_job;
end;
$gw$;
