-- Build the index in which claims find the jobs of each value of a field, without a lock that keeps others from adding jobs.
\set TASK 0
\set FIELD field
\set INDEX jobs_gw_field
create index concurrently if not exists :INDEX
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (
    (
      \ir parts/field_value.sql
    ),
    priority,
    run_at,
    id
  )
  where is_available is not false and task_id = :TASK
