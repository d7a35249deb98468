-- Remove the job with this key; answers the row as it was left, with `locked_by` set when it was running.
select
  job.id,
  tasks.identifier,
  job.payload::text,
  job.attempts,
  job.max_attempts,
  job.priority,
  date_part('epoch', job.run_at),
  date_part('epoch', job.created_at),
  date_part('epoch', job.updated_at),
  job.revision,
  job.key,
  job.flags::text,
  job.job_queue_id,
  queues.queue_name,
  job.last_error,
  date_part('epoch', job.locked_at),
  job.locked_by
from :GRAPHILE_WORKER_SCHEMA.remove_job(job_key => %(job_key)s::text) as job
left join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = job.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = job.job_queue_id
where job.id is not null
