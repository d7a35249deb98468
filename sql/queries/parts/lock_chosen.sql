-- Lock the chosen jobs for this worker: the rows at `:ROWS`.
update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   set attempts = jobs.attempts + 1,
       locked_at = now(),
       locked_by = %(worker_id)s
 where :ROWS
returning
  \ir claimed_columns.sql
  :NAME as queue_name,
  jobs.last_error,
  date_part('epoch', jobs.locked_at) as locked_at
