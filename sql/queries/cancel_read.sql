-- The cancel requests of this worker. They stay until the worker confirms them, in case this answer is lost.
select requests.job_id,
       requests.message,
       requests.retry,
       date_part('epoch', requests.locked_at),
       date_part('epoch', requests.asked_at)
  from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations as requests
 where requests.pool = %(worker_id)s::text
 order by requests.job_id
