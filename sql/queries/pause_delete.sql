-- Delete the pauses of these targets; a pause of a recurring task ends now and stays.
-- The runs that it skipped are not backfilled, whenever a worker starts.
with target as (
  select target.kind, target.name
    from unnest(%(kinds)s::text[], %(names)s::text[]) as target (kind, name)
),
ended as (
  update :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
     set until = now()
    from target
   where pauses.kind = target.kind
     and pauses.name = target.name
     and pauses.kind = 'cron'
     and (pauses.until is null or pauses.until > now())
  returning pauses.kind, pauses.name
),
deleted as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
   using target
   where pauses.kind = target.kind
     and pauses.name = target.name
     and pauses.kind <> 'cron'
  returning pauses.kind, pauses.name
)
select ended.kind, ended.name from ended
union all
select deleted.kind, deleted.name from deleted
