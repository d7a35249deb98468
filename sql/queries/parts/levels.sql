-- The priorities of waiting jobs from that of the cursor, found by leaping from one to the next in an index.
levels (priority) as (
  (
    select jobs.priority
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
       :AMONG
       and jobs.priority >= %(after_priority)s::smallint
     order by jobs.priority
     limit 1
  )
  union all
  select (
           select jobs.priority
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              :AMONG
              and jobs.priority > levels.priority
            order by jobs.priority
            limit 1
         )
    from levels
   where levels.priority is not null
),
