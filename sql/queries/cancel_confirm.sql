-- Delete cancel requests that this worker has received. One that was replaced in the meantime stays.
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations as requests
 using unnest(%(ids)s::bigint[], %(asked_at)s::double precision[]) as received (job_id, asked_at)
 where requests.pool = %(worker_id)s::text
   and requests.job_id = received.job_id
   and date_part('epoch', requests.asked_at) = received.asked_at
returning requests.job_id
