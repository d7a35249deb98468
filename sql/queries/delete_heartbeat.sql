-- Forget a pool that ended in order.
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_workers
 where id = %(worker_id)s
returning id
