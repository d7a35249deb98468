-- Jobs, each with `:PAYLOAD`, and with `:MORE` behind the worker that has locked it; a condition follows.
select
  jobs.id,
  tasks.identifier,
  :PAYLOAD,
  \set JOB jobs
  \ir job_columns.sql
  jobs.locked_by
  :MORE
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
