-- The current claim rules: their revision, whether a pause has ended, the tasks with a limit, and one row for each pause
-- that has not ended, with the seconds until its end. One snapshot reads all of it. Claims do not depend on pauses of
-- recurring tasks.
select
  coalesce((select rules.revision from :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules as rules), 0),
  exists (
    select from :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as ended where ended.until <= now() and ended.kind <> 'cron'
  ),
  array(select limits.task from :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits),
  pauses.kind,
  pauses.name,
  date_part('epoch', pauses.until - now())
from (select) as one
left join :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
  on pauses.kind <> 'cron'
 and (pauses.until is null or pauses.until > now())
