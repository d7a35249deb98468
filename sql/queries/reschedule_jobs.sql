-- Change when and how jobs run; running ones are left alone, null keeps a value. Answers the changed jobs.
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
from :GRAPHILE_WORKER_SCHEMA.reschedule_jobs(
  %(ids)s::bigint[],
  run_at => coalesce(%(run_at)s::timestamptz, now() + make_interval(secs => %(delay_seconds)s)),
  priority => %(priority)s::int,
  attempts => %(attempts)s::int,
  max_attempts => %(max_attempts)s::int
) as job
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = job.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = job.job_queue_id
order by job.id
