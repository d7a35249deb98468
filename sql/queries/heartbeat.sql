-- Record a worker's heartbeat; returns the seconds since the last one (null: none), and whether graphile_worker_rs
-- keeps workers here as well. Its sweep recovers jobs of every worker that its table does not list. A worker that was
-- presumed dead finds its row deleted and inserts it again with its start time. Only `xmax` of the insert shows that
-- the row is new: `former` may have read a row that a sweep deleted at the same time. A worker that only polls reads
-- here that jobs are to be cancelled, that the claim rules differ from those it confirmed, and the newest breaking
-- revision: a notification may be lost, and every role that can connect can send one. No statement here touches the
-- jobs table, whose locks must not make a live worker look dead. The ping goes to all listening workers of the database.
-- One that receives none for long knows that its LISTEN is broken. Without `:READS` it reads nothing but its own row:
-- a table that cannot be read must not make a live worker look dead.
\set READS true
with former as (
  select date_part('epoch', now() - last_heartbeat_at) as inactive_seconds
    from :GRAPHILE_WORKER_SCHEMA._private_gw_workers
   where id = %(worker_id)s::text
),
beat as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_workers
    (id, started_at, last_heartbeat_at, host, pid, version, metadata)
  values (
    %(worker_id)s::text,
    now() - make_interval(secs => %(alive_seconds)s::double precision),
    now(),
    %(host)s::text,
    %(pid)s::int,
    %(version)s::text,
    %(metadata)s::jsonb
  )
  on conflict (id) do update
    set last_heartbeat_at = excluded.last_heartbeat_at,
        metadata = excluded.metadata
  returning xmax = 0 as is_new, claim_rules_revision
)
select case when is_new then null else (select inactive_seconds from former) end,
       to_regprocedure(pg_catalog.format('%%I.worker_heartbeat(text, json)', %(schema)s::text)) is not null,
\if :READS
       exists (select from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations where pool = %(worker_id)s::text),
       (select max(id) from :GRAPHILE_WORKER_SCHEMA.migrations where breaking and id > %(revision)s::int),
       coalesce((select rules.revision from :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules as rules), 0)
         <> coalesce(beat.claim_rules_revision, 0),
\endif
       case when %(ping)s::boolean then pg_notify('gw:echo', '')::text end
  from beat
