-- The pauses that have not ended, the oldest first.
select
  pauses.kind,
  pauses.name,
  date_part('epoch', pauses.paused_at),
  date_part('epoch', pauses.until),
  pauses.paused_by,
  pauses.reason
from :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
where pauses.until is null
   or pauses.until > now()
order by pauses.paused_at, pauses.kind, pauses.name
