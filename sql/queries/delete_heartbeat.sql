-- Delete the heartbeat of a worker that shut down gracefully.
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_workers
 where id = %(worker_id)s::text
returning id
