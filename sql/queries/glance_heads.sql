-- For each priority that has waiting jobs: the one that came due first, how many are due, and when the next will be.
-- Priorities are found by leaping from one to the next in the index that claims use, and counting ends at `most`.
-- One walk finds the oldest and counts: entries of jobs that are done lie at its beginning until they are vacuumed away.
with recursive levels (priority, depth) as (
  (
    select jobs.priority, 1
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
     order by jobs.priority
     limit 1
  )
  union all
  select (
           select jobs.priority
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.priority > levels.priority
            order by jobs.priority
            limit 1
         ),
         levels.depth + 1
    from levels
   where levels.priority is not null
     and levels.depth <= %(levels)s
)
select
  levels.priority,
  coalesce(due.ready, 0),
  due.id,
  (select tasks.identifier from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks where tasks.id = due.task_id),
  date_part('epoch', due.run_at),
  date_part('epoch', later.run_at)
from levels
left join lateral (
  select near.id, near.task_id, near.run_at, count(*) over () as ready
    from (
           select jobs.id, jobs.task_id, jobs.run_at
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.priority = levels.priority
              and jobs.run_at <= now()
            order by jobs.run_at
            limit %(most)s
         ) as near
   order by near.run_at
   limit 1
) as due on true
left join lateral (
  select jobs.run_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.is_available = true
     and jobs.priority = levels.priority
     and jobs.run_at > now()
   order by jobs.run_at
   limit 1
) as later on true
where levels.priority is not null
order by levels.priority
