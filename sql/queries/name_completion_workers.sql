-- The first workers that lock jobs or queues and whose ids start with a prefix, for completion in a shell.
with locked as materialized (
  select jobs.locked_by
   \ir parts/from_locked_jobs.sql
)
select held.locked_by
  from (
         select locked.locked_by from locked where locked.locked_by is not null
         union
         select queues.locked_by from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
          where queues.locked_by is not null
            and not starts_with(queues.locked_by, 'gw-pause:')
       ) as held
 where starts_with(held.locked_by, %(prefix)s::text)
 order by held.locked_by
 limit %(limit)s
