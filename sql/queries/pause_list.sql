-- The pauses that have not ended, the oldest first. A paused queue stays locked until a worker of gw releases it, also
-- after the time of its pause; until then its pause has not ended.
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
   or pauses.kind = 'queue'
  and exists (
        select
          from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
         where queues.queue_name = pauses.name
           and queues.locked_by = 'gw-pause:' || pauses.name
      )
order by pauses.paused_at, pauses.kind, pauses.name
