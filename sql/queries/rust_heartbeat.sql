-- Record a worker's heartbeat in the table of graphile_worker_rs.
select :GRAPHILE_WORKER_SCHEMA.worker_heartbeat(%(worker_id)s::text, %(metadata)s::json)
