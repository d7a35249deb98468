-- Say in the Rust port's table that a pool lives.
select :GRAPHILE_WORKER_SCHEMA.worker_heartbeat(%(pool)s::text, %(metadata)s::json)
