-- The moments of the job that has been due for longest and of the next that will be, over all priorities that occur.
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
     and levels.depth <= %(most)s
)
select
  date_part('epoch', min(due.run_at)),
  date_part('epoch', min(later.run_at)),
  count(*) filter (where levels.priority is not null) > %(most)s
from levels
left join lateral (
  select jobs.run_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.is_available = true
     and jobs.priority = levels.priority
     and jobs.run_at <= now()
   order by jobs.run_at
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
