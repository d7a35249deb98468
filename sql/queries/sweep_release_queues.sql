-- Release the queues of dead workers, except one whose job stayed locked; returns their ids.
-- Runs after sweep_recover_jobs.sql in the same transaction: every session locks a job's row before its queue's.
with locked as materialized (
  select jobs.job_queue_id, jobs.locked_by
   \ir parts/from_locked_jobs.sql
),
stale as (
  select *
    from unnest(%(workers)s::text[], %(inactive_seconds)s::double precision[]) as stale (id, seconds)
),
swept as (
  select queues.id
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
    join stale
      on queues.locked_by = stale.id
     and queues.locked_at <= now() - make_interval(secs => stale.seconds)
   where not exists (
           select from locked
            where locked.job_queue_id = queues.id
              and locked.locked_by = queues.locked_by
         )
   order by queues.id
     for update of queues skip locked
)
update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   set locked_at = null,
       locked_by = null
  from swept
 where queues.id = swept.id
returning queues.id
