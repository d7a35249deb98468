-- Insert the pending specifications as jobs; `returning` or `on conflict` follows.
-- The rows are made in the order of the specifications, whatever order the joins find them in, for the jobs of a
-- queue run in the order of id. A task deleted since the first statement makes this fail; an inner join would drop
-- its jobs silently.
insert into :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       (job_queue_id, task_id, payload, run_at, max_attempts, key, priority, flags)
select job_queues.id,
       tasks.id,
       coalesce(spec.payload, '{}'),
       coalesce(spec.run_at, now()),
       coalesce(spec.max_attempts, 25::smallint),
       spec.job_key,
       coalesce(spec.priority, 0::smallint),
       case when spec.flags is not null then
         (select jsonb_object_agg(flag, true) from unnest(spec.flags) as flag)
       end
  from unnest(v_pending) with ordinality as spec
       (identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, place)
  left join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.identifier = spec.identifier
  left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as job_queues on job_queues.queue_name = spec.queue_name
 order by spec.place
