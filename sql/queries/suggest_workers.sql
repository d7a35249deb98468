-- The workers that hold jobs or queues and whose ids begin like this, for completion in a shell.
-- Our index of locked jobs is chosen for its order, whatever the statistics say.
with locked as materialized (
  select jobs.locked_by
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is not null
   order by jobs.locked_at
   limit 100000
)
select held.locked_by
  from (
         select locked.locked_by from locked where locked.locked_by is not null
         union
         select queues.locked_by from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
          where queues.locked_by is not null
       ) as held
 where starts_with(held.locked_by, %(prefix)s::text)
 order by held.locked_by
 limit %(limit)s
