-- The priorities of waiting jobs, each with the time of its first job, found by leaping from one to the next in an
-- index. `:AMONG` limits them to some jobs. Who reads the jobs of a priority begins at that time: before it, the index has
-- only entries of dead rows. With one that is `:KNOWN`, the first leap is `:BELOW` it, and passes none of its dead rows.
:PRIORITIES (priority, since) as (
  select coalesce(leap.priority, :KNOWN), coalesce(leap.run_at, '-infinity')
    from (select) as one
    left join lateral (
           select jobs.priority, jobs.run_at
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              :AMONG
              :BELOW
            order by jobs.priority, jobs.run_at
            limit 1
         ) as leap on true
   where coalesce(leap.priority, :KNOWN) is not null
  union all
  select leap.priority, leap.run_at
    from :PRIORITIES
   cross join lateral (
           select jobs.priority, jobs.run_at
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              :AMONG
              and jobs.priority > :PRIORITIES.priority
            order by jobs.priority, jobs.run_at
            limit 1
         ) as leap
),
