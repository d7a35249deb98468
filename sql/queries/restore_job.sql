-- Add a deleted job again, as it was and under a new id; no row when another job has its key.
-- The functions that add jobs begin with no attempt made and would replace the other job, so the row is made here.
-- With `:EXPIRES` it expires unless it starts in time.
\set EXPIRES false
with added as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
         (job_queue_id, task_id, payload, priority, run_at, attempts, max_attempts, last_error, key, flags)
  select queues.id,
         tasks.id,
         %(payload)s::json,
         %(priority)s::smallint,
         to_timestamp(%(run_at)s::double precision),
         %(attempts)s::smallint,
         %(max_attempts)s::smallint,
         %(last_error)s::text,
         %(key)s::text,
         %(flags)s::jsonb
    from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
    left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.queue_name = %(queue)s::text
   where tasks.identifier = %(task)s::text
      on conflict (key) do nothing
  returning jobs.id, jobs.flags
)
\if :EXPIRES
,
\ir parts/listed_expiries.sql
\endif
select added.id
  from added
