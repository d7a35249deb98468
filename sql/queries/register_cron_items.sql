-- Make crontab identifiers known, and answer what is remembered of them.
-- One that another worker registers at the same time is missing from the result: it has nothing to backfill.
with added as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_known_crontabs (identifier, known_since)
  select pg_catalog.unnest(%(identifiers)s::text[]), %(known_since)s::timestamptz
  on conflict (identifier) do nothing
  returning identifier, known_since, last_execution
)
select identifier, date_part('epoch', known_since), date_part('epoch', last_execution)
  from added
union all
select known.identifier, date_part('epoch', known.known_since), date_part('epoch', known.last_execution)
  from :GRAPHILE_WORKER_SCHEMA._private_known_crontabs as known
 where known.identifier = any(%(identifiers)s::text[])
