-- Who locks jobs and queues: how many of each, the age of the latest and of the oldest lock in seconds, and whether one
-- of the jobs is resilient. The lock of a paused queue belongs to no worker. A flag counts if its value is not false, null, zero or empty.
with locked as materialized (
  select jobs.locked_by, jobs.locked_at, jobs.flags
   \ir parts/from_locked_jobs.sql
)
select locks.locked_by,
       count(*) filter (where locks.is_job),
       count(*) filter (where not locks.is_job),
       date_part('epoch', now() - max(locks.locked_at)),
       date_part('epoch', now() - min(locks.locked_at)),
       bool_or(locks.flags is not null and exists (
         select from jsonb_each(case when jsonb_typeof(locks.flags) = 'object' then locks.flags end) as flag
          where flag.key = any(%(resilient_flags)s::text[])
            and flag.value not in ('false', 'null', '0', '""')
       ))
  from (
         select locked.locked_by, locked.locked_at, locked.flags, true as is_job
           from locked
         union all
         select queues.locked_by, queues.locked_at, null, false
           from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
          where queues.locked_at is not null
            and starts_with(queues.locked_by, 'gw-pause:') is not true
       ) as locks
 group by locks.locked_by
 order by locks.locked_by
