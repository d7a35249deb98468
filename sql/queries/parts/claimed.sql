-- The rows whose `:COLUMN` is in `:CHOSEN`, locked for this worker.
-- `key` keeps its value, but is named. Where an update does not name an index's columns, PostgreSQL 14 and later search
-- each full page of the index for entries of dead rows. Most keys are null, and their pages are full of entries of rows
-- that wait or run, so the search finds little. It took a sixth of a claim's time beside a busy settling session.
-- The payload leaves as the type that it has, and so is unpacked as it is sent. The server keeps the rows of a statement
-- that writes until it ends; unpacked ones of 100 kB went to a file first, and took two and a half times the server's time.
-- `:JSON` is `text` for drivers that would decode it.
\set JSON json
claimed as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = jobs.attempts + 1,
         locked_at = now(),
         locked_by = %(worker_id)s::text,
         key = jobs.key
   where jobs.:COLUMN = any(array(select :CHOSEN))
  returning
    jobs.id,
    jobs.task_id,
    cast(jobs.payload as :JSON) as payload,
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
