-- Delete a worker from the table of graphile_worker_rs after a graceful shutdown.
select :GRAPHILE_WORKER_SCHEMA.worker_deregister(%(worker_id)s::text)
