-- Forget a pool that ended in order in the Rust port's table.
select :GRAPHILE_WORKER_SCHEMA.worker_deregister(%(worker_id)s::text)
