-- The first jobs of these tasks that are due and that no worker has claimed, with their flags and the lock of their queue.
select
  due.task_id,
  array(select jsonb_object_keys(due.flags)),
  queues.queue_name,
  queues.locked_by
from (
  select jobs.task_id, jobs.flags, jobs.job_queue_id, jobs.priority, jobs.run_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.is_available = true
     and jobs.run_at <= coalesce(%(now)s::timestamptz, now())
     and jobs.task_id = any(%(task_ids)s::int[])
   order by jobs.priority, jobs.run_at
   limit %(most)s::bigint
) as due
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = due.job_queue_id
