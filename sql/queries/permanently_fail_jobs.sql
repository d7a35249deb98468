-- Fail jobs for good; running ones are left alone. Answers the failed jobs.
select
  job.id,
  tasks.identifier,
  job.payload::text,
  \set JOB job
  \ir parts/job_columns.sql
  job.locked_by
from :GRAPHILE_WORKER_SCHEMA.permanently_fail_jobs(%(ids)s::bigint[], %(reason)s::text) as job
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = job.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = job.job_queue_id
order by job.id
