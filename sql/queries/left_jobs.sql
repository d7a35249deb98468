-- The first jobs of these tasks that are due and that no worker has claimed, with their flags and the lock of their queue.
-- Like a claim it steps from priority to priority past scheduled jobs: reading 200,000 of them took 49 ms. Both kinds are
-- read by the indexes that claims read. These have marked the entries of jobs that are gone, which no one has in the index
-- of both kinds: after a drain of 200,000 jobs that took 20 ms.
with recursive
\ir parts/both_priorities.sql
first_due as (
  (
    select due.*
      from unqueued_priorities
     cross join lateral (
             select jobs.task_id, jobs.flags, jobs.job_queue_id, jobs.priority, jobs.run_at
               from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
              where jobs.is_available = true
                and jobs.job_queue_id is null
                and %(queue_names)s::text[] is null
                and jobs.priority = unqueued_priorities.priority
                and jobs.run_at >= unqueued_priorities.since
                and jobs.run_at <= coalesce(%(now)s::timestamptz, now())
                and jobs.task_id = any(%(task_ids)s::int[])
              order by jobs.run_at
              limit %(most)s::bigint
           ) as due
     limit %(most)s::bigint
  )
  union all
  (
    select due.*
      from queued_priorities
     cross join lateral (
             select jobs.task_id, jobs.flags, jobs.job_queue_id, jobs.priority, jobs.run_at
               from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
              where jobs.is_available = true
                and jobs.job_queue_id is not null
                and jobs.priority = queued_priorities.priority
                and jobs.run_at >= queued_priorities.since
                and jobs.run_at <= coalesce(%(now)s::timestamptz, now())
                and jobs.task_id = any(%(task_ids)s::int[])
                and (
                  %(queue_names)s::text[] is null
                  or jobs.job_queue_id = any(array(
                       select queues.id
                         from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
                        where queues.queue_name = any(%(queue_names)s::text[])
                     ))
                )
              order by jobs.run_at
              limit %(most)s::bigint
           ) as due
     limit %(most)s::bigint
  )
)
select
  first_due.task_id,
  array(select jsonb_object_keys(first_due.flags)),
  queues.queue_name,
  queues.locked_by
from first_due
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = first_due.job_queue_id
order by first_due.priority, first_due.run_at
limit %(most)s::bigint
