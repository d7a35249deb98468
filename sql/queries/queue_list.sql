-- The queues in order of their names, each with its waiting jobs up to a limit and its next job.
-- This needs gw's index of queued jobs. The limited scan keeps its order, so the first element of an array is the next
-- job.
select
  queues.queue_name,
  queues.locked_by,
  date_part('epoch', queues.locked_at),
  waiting.jobs,
  waiting.jobs = %(most)s,
  waiting.due,
  heads.id,
  (select tasks.identifier from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks where tasks.id = heads.task_id),
  date_part('epoch', heads.run_at)
from (
  select named.id, named.queue_name, named.locked_by, named.locked_at
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as named
   where named.queue_name > %(after)s::text
     and (named.locked_at is not null or not %(only_held)s::boolean)
   order by named.queue_name
   limit %(limit)s
) as queues
cross join lateral (
  select
    count(*) as jobs,
    count(*) filter (where near.run_at <= now()) as due,
    coalesce((array_agg(near.id) filter (where near.run_at <= now()))[1], (array_agg(near.id))[1]) as head_id
  from (
    select jobs.id, jobs.priority, jobs.run_at
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
       and jobs.job_queue_id = queues.id
     order by jobs.priority, jobs.run_at, jobs.id
     limit %(most)s
  ) as near
) as waiting
left join :GRAPHILE_WORKER_SCHEMA._private_jobs as heads on heads.id = waiting.head_id
order by queues.queue_name
