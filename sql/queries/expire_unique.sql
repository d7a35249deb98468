-- Forget unique jobs whose time is over, at most 10,000.
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_unique as expired
 where expired.key = any(array(
         select earlier.key
           from :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier
          where earlier.expires_at < now()
          limit 10000
       ))
returning expired.job_id
