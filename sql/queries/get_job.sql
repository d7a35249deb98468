-- One job by its id or its key, with its payload, as the session's transaction sees it.
select
  jobs.id,
  tasks.identifier,
  jobs.payload::text,
  \set JOB jobs
  \ir parts/job_columns.sql
  jobs.locked_by
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
where jobs.id = coalesce(
        %(id)s::bigint,
        (select keyed.id from :GRAPHILE_WORKER_SCHEMA._private_jobs as keyed where keyed.key = %(job_key)s::text)
      )
