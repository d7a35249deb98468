-- Lock the paused queues for all workers of every language; returns their names, each with whether
-- graphile_worker_rs keeps its workers here: its sweep releases locks of workers that its table does not list.
-- The lock may replace that of a worker whose job still runs. The worker then settles its job, but does not release the
-- queue, because every implementation releases a queue only if its `locked_by` is still its own.
-- A lock is renewed after an hour, because Node.js releases locks that are four hours old.
-- The rows of the pauses are locked first: a session that resumes waits, or this one finds that the pause is gone.
with paused as materialized (
  select pauses.name
    from :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
   where pauses.kind = 'queue'
     and (pauses.until is null or pauses.until > now())
   order by pauses.name
     for key share
),
locked as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues (queue_name, locked_at, locked_by)
  select paused.name, now(), %(prefix)s::text || paused.name
    from paused
   where not exists (
           select
             from :GRAPHILE_WORKER_SCHEMA._private_job_queues as known
            where known.queue_name = paused.name
              and known.locked_by = %(prefix)s::text || paused.name
              and known.locked_at > now() - interval '1 hour'
         )
  on conflict (queue_name) do update
    set locked_at = excluded.locked_at,
        locked_by = excluded.locked_by
)
select paused.name,
       to_regprocedure(pg_catalog.format('%%I.worker_heartbeat(text, json)', %(schema)s::text)) is not null
  from paused
