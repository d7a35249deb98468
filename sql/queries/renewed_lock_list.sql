-- When the attempts started whose locks were renewed since, with the lock as it was renewed; of some jobs, or of all.
select job_id, date_part('epoch', locked_at), date_part('epoch', started_at)
  from :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks
 where %(ids)s::bigint[] is null
    or job_id = any(%(ids)s::bigint[])
