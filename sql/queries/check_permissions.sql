-- Change nothing, with every privilege that a worker's statements need.
-- The server checks privileges before it reads rows, and no row matches.
with added as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_tasks (identifier)
  select '' where false
),
settled as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs where false
),
freed as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues set locked_at = null where false
)
update :GRAPHILE_WORKER_SCHEMA._private_jobs set locked_at = null where false
