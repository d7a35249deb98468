-- Delete the heartbeats of dead workers that hold no lock; returns their ids. `:WORKERS` is the table of heartbeats.
-- A worker whose job stayed locked keeps its heartbeat, by which the next sweep finds it. A heartbeat that another
-- session has locked is being written, or deleted by another sweep.
\set WORKERS _private_gw_workers
with locked as materialized (
  select jobs.locked_by
   \ir parts/from_locked_jobs.sql
),
stale as (
  select workers.id
    from :GRAPHILE_WORKER_SCHEMA.:WORKERS as workers
    join unnest(%(workers)s::text[], %(inactive_seconds)s::double precision[]) as stale (id, seconds)
      on workers.id = stale.id
     and workers.last_heartbeat_at <= now() - make_interval(secs => stale.seconds)
   where not exists (
           select from locked where locked.locked_by = workers.id
         )
     and not exists (
           select from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues where queues.locked_by = workers.id
         )
   order by workers.id
     for update of workers skip locked
)
delete from :GRAPHILE_WORKER_SCHEMA.:WORKERS as workers
 using stale
 where workers.id = stale.id
returning workers.id
