-- How many jobs wait for others.
select count(*) from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting where released_at is null
