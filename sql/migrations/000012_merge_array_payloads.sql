-- A keyed add appends its payload to the waiting job's when both are JSON arrays.

create or replace function :GRAPHILE_WORKER_SCHEMA.add_jobs(
  specs :GRAPHILE_WORKER_SCHEMA.job_spec[],
  job_key_preserve_run_at boolean default false
) returns setof :GRAPHILE_WORKER_SCHEMA.jobs
language plpgsql as $gw$
begin
  insert into :GRAPHILE_WORKER_SCHEMA.tasks (identifier)
    select distinct spec.identifier from unnest(specs) as spec
  on conflict do nothing;
  insert into :GRAPHILE_WORKER_SCHEMA.job_queues (queue_name)
    select distinct spec.queue_name from unnest(specs) as spec where spec.queue_name is not null
  on conflict do nothing;

  update :GRAPHILE_WORKER_SCHEMA.jobs
     set key = null, attempts = jobs.max_attempts, updated_at = now()
    from unnest(specs) as spec
   where jobs.key = spec.job_key
     and jobs.is_available is not true;

  return query
    insert into :GRAPHILE_WORKER_SCHEMA.jobs
           (job_queue_id, task_id, payload, run_at, max_attempts, key, priority, flags)
    select job_queues.id,
           tasks.id,
           coalesce(spec.payload, '{}'),
           coalesce(spec.run_at, now()),
           coalesce(spec.max_attempts, 25),
           spec.job_key,
           coalesce(spec.priority, 0),
           (select jsonb_object_agg(flag, true) from unnest(spec.flags) as flag)
      from unnest(specs) as spec
      join :GRAPHILE_WORKER_SCHEMA.tasks on tasks.identifier = spec.identifier
      left join :GRAPHILE_WORKER_SCHEMA.job_queues on job_queues.queue_name = spec.queue_name
    \ir parts/replace_waiting_job.sql
    returning jobs.*;
end;
$gw$;
