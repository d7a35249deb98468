-- How many groups have a last job that waits.
select count(*) from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting
