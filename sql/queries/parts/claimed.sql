-- The jobs in `:CHOSEN`, locked for this worker.
-- A row that another session changed between snapshot and lock is locked in its new version, which this snapshot does not
-- see. An update by id follows the row to that version; an update by its address (`ctid`) would not find it.
claimed as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = jobs.attempts + 1,
         locked_at = now(),
         locked_by = %(worker_id)s
   where jobs.id = any(array(select id from :CHOSEN))
  returning
    jobs.id,
    jobs.task_id,
    jobs.payload::text as payload,
    jobs.attempts,
    jobs.max_attempts,
    jobs.priority,
    date_part('epoch', jobs.run_at) as run_at,
    date_part('epoch', jobs.created_at) as created_at,
    date_part('epoch', jobs.updated_at) as updated_at,
    jobs.revision,
    jobs.key,
    jobs.flags::text as flags,
    jobs.job_queue_id,
    :NAME as queue_name,
    jobs.last_error,
    date_part('epoch', jobs.locked_at) as locked_at
)
select * from claimed
