-- A queue whose row another session locks is left out.
queue_rows as materialized (
  select queues.id, queues.queue_name
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   where queues.id = any(array(select distinct job_queue_id from :PICKS where job_queue_id is not null))
     and queues.is_available = true
     for update skip locked
),
-- Found by id. `is not false` means the same here as `= true`, but fits no index of waiting jobs: with statistics from a
-- time when no queued job waited, the planner would read one of those whole.
queued as materialized (
  select
    jobs.id,
    jobs.job_queue_id,
    jobs.priority,
    jobs.run_at,
    \ir parts/payload_bytes.sql
    as bytes
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(array(
           select picked.id
             from :PICKS as picked
            where (picked.job_queue_id in (select id from queue_rows)) is true
         ))
     and jobs.is_available is not false
     and jobs.job_queue_id = any(array(select id from queue_rows))
     \ir parts/is_runnable.sql
     for update skip locked
),
