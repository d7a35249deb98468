-- Delete jobs as if they had been completed; running ones are left alone. Answers the deleted jobs.
select
  job.id,
  tasks.identifier,
  job.payload::text,
  \set JOB job
  \ir parts/job_columns.sql
  job.locked_by
from :GRAPHILE_WORKER_SCHEMA.complete_jobs(%(ids)s::bigint[]) as job
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = job.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = job.job_queue_id
order by job.id
