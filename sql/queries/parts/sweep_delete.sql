-- Forget the workers of one table that are silent and hold nothing any more.
-- One whose job was left locked stays, so that the next sweep knows it by its heartbeat still.
with locked as materialized (
  select jobs.locked_by
   \ir from_locked_jobs.sql
)
delete from :GRAPHILE_WORKER_SCHEMA.:WORKERS as workers
 using unnest(%(workers)s::text[], %(silent_seconds)s::double precision[]) as silent (id, seconds)
 where workers.id = silent.id
   and workers.last_heartbeat_at <= now() - make_interval(secs => silent.seconds)
   and not exists (
         select from locked where locked.locked_by = workers.id
       )
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues where queues.locked_by = workers.id
       )
returning workers.id
