-- The priorities of waiting jobs with or without a queue, found by leaping from one to the next in an index.
:PRIORITIES (priority) as (
  select (
           select jobs.priority
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id :QUEUE
            order by jobs.priority
            limit 1
         )
  union all
  select (
           select jobs.priority
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id :QUEUE
              and jobs.priority > :PRIORITIES.priority
            order by jobs.priority
            limit 1
         )
    from :PRIORITIES
   where :PRIORITIES.priority is not null
),
