-- Change when and how jobs run; running ones are left alone, null keeps a value. Answers the changed jobs.
select
  job.id,
  tasks.identifier,
  job.payload::text,
  \set JOB job
  \ir parts/job_columns.sql
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
