-- Lock jobs that were read before until the transaction ends, and return them as they are now, with the clock.
-- Rows are locked in order of their ids. Rows that another session locks are skipped and reported, not waited for. The
-- payload is returned only if the rows are going to be deleted.
select
  jobs.id,
  tasks.identifier,
  case when %(with_payload)s then jobs.payload::text else '' end,
  \set JOB jobs
  \ir parts/job_columns.sql
  jobs.locked_by,
  jobs.locked_at >= now() - interval '4 hours'
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
where jobs.id = any(%(ids)s::bigint[])
order by jobs.id
  for update of jobs skip locked
