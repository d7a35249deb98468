-- Who holds jobs and queues, how many, and since when at the earliest.
with locked as materialized (
  select jobs.locked_by, jobs.locked_at
   \ir parts/from_locked_jobs.sql
)
select held.locked_by,
       count(*) filter (where held.is_job),
       count(*) filter (where not held.is_job),
       date_part('epoch', now() - min(held.locked_at))
  from (
         select locked.locked_by, locked.locked_at, true as is_job
           from locked
         union all
         select queues.locked_by, queues.locked_at, false
           from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
          where queues.locked_at is not null
       ) as held
 group by held.locked_by
 order by min(held.locked_at)
