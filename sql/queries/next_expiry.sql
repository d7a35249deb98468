-- The seconds until the next job expires that has not started; null: there is none.
select date_part('epoch', min(listed.expires_at) - now())
  from :GRAPHILE_WORKER_SCHEMA._private_gw_expiring as listed
