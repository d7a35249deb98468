-- Delete locked rows as if their jobs had completed, with the function that every client uses.
-- With `:RECORDS` they are added to history.
\set RECORDS false
\set KEPT null::interval
with removed as (
  select jobs.*, tasks.identifier as task, queues.queue_name
    from :GRAPHILE_WORKER_SCHEMA.complete_jobs(%(ids)s::bigint[]) as jobs
    join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
    left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
)
\if :RECORDS
,
recorded as (
  \ir parts/recorded_removals.sql
)
\endif
select removed.id from removed
