-- Remove the job with this key; returns its row, with `locked_by` set if the job was running.
select
  \set JOB job
  \set PAYLOAD 'job.payload::text'
  \ir parts/job_columns.sql
from :GRAPHILE_WORKER_SCHEMA.remove_job(job_key => %(job_key)s::text) as job
left join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = job.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = job.job_queue_id
where job.id is not null
