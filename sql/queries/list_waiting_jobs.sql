-- The waiting jobs as the session's transaction sees them, in the order in which workers take them.
select
  \set JOB jobs
  \set PAYLOAD 'jobs.payload::text'
  \ir parts/job_columns.sql
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
where jobs.is_available
  and (%(task)s::text is null or tasks.identifier = %(task)s::text)
order by jobs.priority, jobs.run_at, jobs.id
limit %(limit)s::int
