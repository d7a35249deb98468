-- Claim jobs that have no named queue, provided that no job in a queue is waiting; a last row without an id says that one is.
--
-- The whole claim has some thirty parts, and making them ready takes longer than finding one job. Where nobody uses named
-- queues this takes half of that time, which is what a job waits for that is added to an empty queue. It claims nothing
-- when there are queued jobs, which may be more urgent: then claim_jobs.sql has to compare them. The parts that both have
-- are the same.
with recursive
unqueued_levels (priority) as (
  (
    select jobs.priority
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
       and jobs.job_queue_id is null
     order by jobs.priority
     limit 1
  )
  union all
  select (
           select jobs.priority
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is null
              and jobs.priority > unqueued_levels.priority
            order by jobs.priority
            limit 1
         )
    from unqueued_levels
   where unqueued_levels.priority is not null
),
queued (anything) as materialized (
  select exists (
           select
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is not null
         )
),
unqueued as materialized (
  select due.id
    from (select * from unqueued_levels where not (select anything from queued)) as levels
   cross join lateral (
           select jobs.id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is null
              and jobs.priority = levels.priority
              and jobs.run_at <= coalesce(%(now)s::timestamptz, now())
              and jobs.task_id = any(%(task_ids)s::int[])
              and (%(forbidden_flags)s::text[] is null or (jobs.flags ?| %(forbidden_flags)s::text[]) is not true)
            order by jobs.run_at
            limit %(limit)s
              for update skip locked
         ) as due
   limit %(limit)s
),
claimed as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = jobs.attempts + 1,
         locked_at = now(),
         locked_by = %(pool)s
   where jobs.id = any(array(select id from unqueued))
  returning
    jobs.id,
    jobs.task_id,
    jobs.payload::text as payload,
    jobs.attempts,
    jobs.max_attempts,
    jobs.priority,
    date_part('epoch', jobs.run_at) as run_at,
    date_part('epoch', jobs.created_at) as created_at,
    date_part('epoch', jobs.updated_at) as updated_at,
    jobs.revision,
    jobs.key,
    jobs.flags::text as flags,
    jobs.job_queue_id,
    null::text as queue_name,
    jobs.last_error
)
select * from claimed
union all
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
  from queued
 where queued.anything
