-- The columns of a job that an action locks, and whether a worker runs it; its payload only if it is asked for.
select
  \set JOB jobs
  \set PAYLOAD 'case when %(with_payload)s::boolean then jobs.payload::text else '' end'
  \ir job_columns.sql
  ,
  jobs.locked_at >= now() - interval '4 hours'
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
