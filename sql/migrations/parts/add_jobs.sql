-- Add many jobs in one call; the only function that inserts jobs with replaceable keys.
-- The marker in the body shows `gw migrate` that this is the repaired function, in its fast form: a job added under a key
-- is never lost, however the call races with a claim, a completion, a failure or another add.
create or replace function :GRAPHILE_WORKER_SCHEMA.add_jobs(
  specs :GRAPHILE_WORKER_SCHEMA.job_spec[],
  job_key_preserve_run_at boolean default false
) returns setof :GRAPHILE_WORKER_SCHEMA._private_jobs
language plpgsql set search_path = pg_catalog, pg_temp as $gw$
declare
  -- gw:add-jobs:1
  v_pending :GRAPHILE_WORKER_SCHEMA.job_spec[] := specs;
  v_keys text[] := array(select spec.job_key from unnest(specs) as spec where spec.job_key is not null);
  v_stored bigint;
begin
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
    update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       set key = null,
           attempts = jobs.max_attempts,
           updated_at = now()
     where jobs.key = any(v_keys)
       and jobs.is_available is not true;

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
