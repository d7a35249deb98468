-- List the jobs that were added, `added`, with the times at which they expire.
\set FLAGS added.flags
expiries as materialized (
  select added.id,
         \ir expires_at.sql
         as expires_at
    from added
),
expiring as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_expiring as listed (job_id, expires_at)
  select expiries.*
    from expiries
   where expiries.expires_at is not null
  on conflict on constraint gw_expiring_pkey do update
     set expires_at = excluded.expires_at
)
