-- The priorities of waiting jobs, found by leaping from one to the next in an index. `:AMONG` limits them to some jobs.
:PRIORITIES (priority) as (
  (
    select jobs.priority
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
       :AMONG
     order by jobs.priority
     limit 1
  )
  union all
  select (
           select jobs.priority
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              :AMONG
              and jobs.priority > :PRIORITIES.priority
            order by jobs.priority
            limit 1
         )
    from :PRIORITIES
   where :PRIORITIES.priority is not null
),
