-- Delete the pauses that have ended, if no other session is changing pauses now. Those of recurring tasks stay, because
-- the runs that they skipped are not backfilled.
with rules as materialized (
  select rules.id
    from :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules as rules
     for update skip locked
)
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
 where pauses.until <= now()
   and pauses.kind <> 'cron'
   and exists (select from rules)
returning pauses.kind, pauses.name
