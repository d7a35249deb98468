-- Whether there is a job this worker could run now. No row is locked, so a job that a claim would step over because its
-- row is briefly locked is seen: a run that ends when nothing is left asks this before it ends.
-- Like the claim it steps from priority to priority past scheduled jobs, and reads the first queued jobs that are due
-- (`near`); only when these do not end does it step from queue to queue (`queues_with_jobs`). Reading every job of held
-- queues took longer than claiming as many.
with recursive
\ir parts/both_priorities.sql
near as materialized (
  select due.job_queue_id
    from queued_priorities
   cross join lateral (
           select jobs.job_queue_id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is not null
              and jobs.priority = queued_priorities.priority
              \ir parts/is_runnable.sql
            order by jobs.run_at, jobs.id
            limit 1000
         ) as due
   limit 1000
),
queues_with_jobs (id) as (
  (
    \set FROM ''
    \ir parts/next_queue.sql
  )
  union all
  select (
           \set FROM 'and jobs.job_queue_id > queues_with_jobs.id'
           \ir parts/next_queue.sql
         )
    from queues_with_jobs
   where queues_with_jobs.id is not null
)
select exists (
         select
           from unqueued_priorities
          cross join lateral (
                  select
                    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                   where jobs.is_available = true
                     and jobs.job_queue_id is null
                     and jobs.priority = unqueued_priorities.priority
                     \ir parts/is_runnable.sql
                   limit 1
                ) as due
       )
    or exists (
         select
           from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
          where queues.id = any(array(select distinct job_queue_id from near))
            and queues.is_available = true
       )
    or (select count(*) from near) >= 1000
   and exists (
         select
           from queues_with_jobs
           join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = queues_with_jobs.id
          cross join lateral (
                  select
                    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                   where jobs.is_available = true
                     and jobs.job_queue_id = queues.id
                     \ir parts/is_runnable.sql
                   limit 1
                ) as due
          where queues.is_available = true
       )
