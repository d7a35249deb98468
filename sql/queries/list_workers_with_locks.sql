-- Whoever holds locks: how many jobs and queues, the seconds since the latest lock, and whether a job is resilient.
-- A flag counts when it is set to something that is not false, null, zero or empty.
-- Our index of locked jobs is chosen for its order, whatever the statistics say; far fewer are ever held than fit.
with locked as materialized (
  select jobs.locked_by, jobs.locked_at, jobs.flags
   \ir parts/from_locked_jobs.sql
),
jobs as (
  select locked.locked_by as holder,
         count(*) as held,
         max(locked.locked_at) as latest,
         bool_or(locked.flags is not null and exists (
           select from jsonb_each(case when jsonb_typeof(locked.flags) = 'object' then locked.flags end) as flag
            where flag.key = any(%(resilient_flags)s::text[])
              and flag.value not in ('false', 'null', '0', '""')
         )) as is_resilient
    from locked
   where locked.locked_by is not null
   group by locked.locked_by
),
queues as (
  select queues.locked_by as holder,
         count(*) as held,
         max(queues.locked_at) as latest
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   where queues.locked_at is not null
     and queues.locked_by is not null
   group by queues.locked_by
)
select holder,
       coalesce(jobs.held, 0),
       coalesce(queues.held, 0),
       date_part('epoch', now() - greatest(jobs.latest, queues.latest)),
       coalesce(jobs.is_resilient, false)
  from jobs
  full join queues using (holder)
 order by holder
