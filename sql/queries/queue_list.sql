-- The queues in order of their names, each with its waiting jobs up to a limit and its next job.
-- This needs gw's index of queued jobs. Within a queue, a probe of that index leads from the first job of one priority
-- to the first job of the next one: the next job and "is any job due" are exact however many jobs are scheduled before
-- it. Beyond `levels` priorities, both are unknown when none of the jobs seen is due.
select
  queues.queue_name,
  queues.locked_by,
  date_part('epoch', queues.locked_at),
  unclaimed.jobs,
  unclaimed.jobs >= %(most)s::bigint,
  due.jobs,
  due.jobs >= %(most)s::bigint or heads.is_cut,
  heads.id,
  (select tasks.identifier from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks where tasks.id = heads.task_id),
  date_part('epoch', heads.run_at)
from (
  select named.id, named.queue_name, named.locked_by, named.locked_at
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as named
   where named.queue_name > %(after)s::text
     and (named.locked_at is not null or not %(only_locked)s::boolean)
     and (%(names)s::text[] is null or named.queue_name = any(%(names)s::text[]))
   order by named.queue_name
   limit %(limit)s::bigint
) as queues
cross join lateral (
  with recursive levels (priority, id, task_id, run_at, depth) as (
    (
      select jobs.priority, jobs.id, jobs.task_id, jobs.run_at, 1
        from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       where jobs.is_available = true
         and jobs.job_queue_id = queues.id
       order by jobs.priority, jobs.run_at, jobs.id
       limit 1
    )
    union all
    select nearest.priority, nearest.id, nearest.task_id, nearest.run_at, levels.depth + 1
      from levels
     cross join lateral (
       select jobs.priority, jobs.id, jobs.task_id, jobs.run_at
         from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
        where jobs.is_available = true
          and jobs.job_queue_id = queues.id
          and jobs.priority > levels.priority
        order by jobs.priority, jobs.run_at, jobs.id
        limit 1
     ) as nearest
     where levels.depth <= %(levels)s::int
  )
  select
    array(select levels.priority from levels where levels.run_at <= now()) as due_priorities,
    (select max(levels.depth) > %(levels)s::int from levels) as is_cut,
    next.*
  from (select) as one
  left join lateral (
    select levels.id, levels.task_id, levels.run_at
      from levels
     order by levels.run_at > now(), case when levels.run_at <= now() then levels.priority end, levels.run_at, levels.id
     limit 1
  ) as next on true
) as heads
cross join lateral (
  select count(*) as jobs
    from (
      select
        from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       where jobs.is_available = true
         and jobs.job_queue_id = queues.id
       order by jobs.priority, jobs.run_at, jobs.id
       limit %(most)s::bigint
    ) as near
) as unclaimed
cross join lateral (
  select count(*) as jobs
    from (
      select
        from unnest(heads.due_priorities) as level (priority)
       cross join lateral (
         select
           from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.is_available = true
            and jobs.job_queue_id = queues.id
            and jobs.priority = level.priority
            and jobs.run_at <= now()
          order by jobs.run_at
          limit %(most)s::bigint
       ) as near
       limit %(most)s::bigint
    ) as near
) as due
order by queues.queue_name
