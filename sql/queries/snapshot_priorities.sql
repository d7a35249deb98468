-- For each priority that has waiting jobs: the one that came due first, how many are due, and when the next will be.
-- The time `infinity` of a job that waits for others is none at which it will be due, and no job was due before it was
-- added.
-- Priorities are found by leaping from one's first job to the next one's in the index that claims use, which walks once
-- past the entries of jobs that are done, until they are vacuumed away. Counting begins at that job, reads nothing but
-- the index where all of a page is known to be visible, and ends at `most`.
with recursive heads (priority, id, task_id, run_at, created_at, depth) as (
  (
    select jobs.priority, jobs.id, jobs.task_id, jobs.run_at, jobs.created_at, 1
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
     order by jobs.priority, jobs.run_at
     limit 1
  )
  union all
  select nearest.priority, nearest.id, nearest.task_id, nearest.run_at, nearest.created_at, heads.depth + 1
    from heads
   cross join lateral (
           select jobs.priority, jobs.id, jobs.task_id, jobs.run_at, jobs.created_at
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.priority > heads.priority
            order by jobs.priority, jobs.run_at
            limit 1
         ) as nearest
   where heads.depth <= %(levels)s::int
)
select
  heads.priority,
  (
    select count(*)
      from (
             select
               from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
              where jobs.is_available = true
                and jobs.priority = heads.priority
                and jobs.run_at >= heads.run_at
                and jobs.run_at <= now()
              order by jobs.run_at
              limit %(most)s::bigint
           ) as due
  ),
  case when heads.run_at <= now() then heads.id end,
  (
    select tasks.identifier
      from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
     where tasks.id = heads.task_id
       and heads.run_at <= now()
  ),
  date_part('epoch', case when heads.run_at <= now() then greatest(heads.run_at, heads.created_at) end),
  case
    when heads.run_at > now() then date_part('epoch', nullif(heads.run_at, 'infinity'))
    else (
      select date_part('epoch', nullif(jobs.run_at, 'infinity'))
        from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       where jobs.is_available = true
         and jobs.priority = heads.priority
         and jobs.run_at > now()
       order by jobs.run_at
       limit 1
    )
  end
from heads
order by heads.priority
