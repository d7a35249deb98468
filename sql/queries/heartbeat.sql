-- Say that a pool lives; answers how many seconds it had been silent (null: nobody knew it), and whether the Rust port
-- keeps workers here as well. The sweep of that port takes jobs from whoever its table does not know.
-- A pool that was presumed dead finds its row gone; it starts a new one with the moment it began. Only the insert itself
-- knows (by its xmax) that the row is new: `former` may have seen one that a sweep deleted at this very moment.
-- Whoever only polls learns here that an operator wants jobs cancelled. The revision is read here as well, for the
-- notification of a breaking migration may be missed, or sent by anybody who can connect.
-- No statement here touches the jobs table: a lock on that must not make a live worker look dead.
-- The echo goes to all pools that listen in this database; one that has heard nothing for long notices by the absence of
-- its own that it is deaf, and has no need of one when it heard another's.
with former as (
  select date_part('epoch', now() - last_heartbeat_at) as silent_seconds
    from :GRAPHILE_WORKER_SCHEMA._private_gw_workers
   where id = %(worker_id)s
),
beat as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_workers
    (id, started_at, last_heartbeat_at, host, pid, version, metadata)
  values (
    %(worker_id)s,
    now() - make_interval(secs => %(alive_seconds)s::double precision),
    now(),
    %(host)s,
    %(pid)s,
    %(version)s,
    %(metadata)s::jsonb
  )
  on conflict (id) do update
    set last_heartbeat_at = excluded.last_heartbeat_at,
        metadata = excluded.metadata
  returning xmax = 0 as is_new
)
select case when is_new then null else (select silent_seconds from former) end,
       to_regprocedure(pg_catalog.format('%%I.worker_heartbeat(text, json)', %(schema)s::text)) is not null,
       exists (select from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations where pool = %(worker_id)s),
       case when %(echo)s::boolean then pg_notify('gw:echo', '')::text end,
       (select max(id) from :GRAPHILE_WORKER_SCHEMA.migrations where breaking and id > %(revision)s)
  from beat
