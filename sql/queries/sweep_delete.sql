-- Delete the heartbeats of dead workers that hold no lock; returns their ids. `:WORKERS` is the table of heartbeats.
-- A worker whose job stayed locked keeps its heartbeat, by which the next sweep finds it.
\set WORKERS _private_gw_workers
with locked as materialized (
  select jobs.locked_by
   \ir parts/from_locked_jobs.sql
)
delete from :GRAPHILE_WORKER_SCHEMA.:WORKERS as workers
 using unnest(%(workers)s::text[], %(inactive_seconds)s::double precision[]) as stale (id, seconds)
 where workers.id = stale.id
   and workers.last_heartbeat_at <= now() - make_interval(secs => stale.seconds)
   and not exists (
         select from locked where locked.locked_by = workers.id
       )
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues where queues.locked_by = workers.id
       )
returning workers.id
