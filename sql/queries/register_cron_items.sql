-- Make crontab identifiers known, and answer what is remembered of them, and until when a pause skips their runs.
-- One that another worker registers at the same time is missing from the result: it has nothing to backfill.
with added as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_known_crontabs (identifier, known_since)
  select pg_catalog.unnest(%(identifiers)s::text[]), %(known_since)s::timestamptz
  on conflict (identifier) do nothing
  returning identifier, known_since, last_execution
)
select identifier, date_part('epoch', known_since), date_part('epoch', last_execution), null::double precision
  from added
union all
select
  known.identifier,
  date_part('epoch', known.known_since),
  date_part('epoch', known.last_execution),
  (
    select date_part('epoch', coalesce(pauses.until, 'infinity'))
      from :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
     where pauses.kind = 'cron'
       and pauses.name = known.identifier
  )
  from :GRAPHILE_WORKER_SCHEMA._private_known_crontabs as known
 where known.identifier = any(%(identifiers)s::text[])
