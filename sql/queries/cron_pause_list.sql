-- The pauses of recurring tasks, also those that have ended: their runs until then are skipped. Ended ones have no reason
-- to be shown.
select
  pauses.kind,
  pauses.name,
  date_part('epoch', pauses.paused_at),
  date_part('epoch', pauses.until),
  pauses.paused_by,
  pauses.reason,
  pauses.until is null or pauses.until > now()
from :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
where pauses.kind = 'cron'
