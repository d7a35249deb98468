-- Forget the silent workers that hold nothing any more; answers their ids.
-- One whose job was left locked stays, so that the next sweep knows it by its heartbeat still.
with locked as materialized (
  select jobs.locked_by
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is not null
   order by jobs.locked_at
   limit 100000
)
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
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
