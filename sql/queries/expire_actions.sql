-- Delete the records of actions whose time is over, at most 10,000.
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_actions as expired
 where expired.id = any(array(
         select earlier.id
           from :GRAPHILE_WORKER_SCHEMA._private_gw_actions as earlier
          where earlier.expires_at < now()
          limit 10000
       ))
returning expired.id
