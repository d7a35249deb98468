-- Say in the Rust port's table that a pool lives.
select :GRAPHILE_WORKER_SCHEMA.worker_heartbeat(%(worker_id)s::text, %(metadata)s::json)
