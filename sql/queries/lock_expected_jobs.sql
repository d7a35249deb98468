-- Hold jobs that somebody looked at until the transaction ends, and answer them as they are now, with the clock.
-- Rows are locked in the order of their ids; one that somebody else works on at this moment is passed by and not waited
-- for: whoever acts by hand would rather hear of it. The payload is sent only when the rows are going to be deleted.
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
