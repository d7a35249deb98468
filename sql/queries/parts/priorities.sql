-- The priorities of the waiting jobs `:AMONG` those of a queue or of none, from the `:FIRST` on. They are found by
-- leaping from one to the next in an index. With one that is `:KNOWN`, the first leap stops before it, and reads none of
-- the dead rows at its beginning.
:PRIORITIES (priority) as (
  select coalesce(
    (
      select jobs.priority
        from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       where jobs.is_available = true
         :AMONG
         :FIRST
       order by jobs.priority
       limit 1
    ),
    :KNOWN
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
