-- Lock `:TABLE` (tasks or queues) against changes until the transaction ends.
-- `add_job` reads the id of a task or queue before it inserts the job, and a worker reads the ids of its tasks when it
-- starts: neither must find the row deleted in between. Reads continue.
\set TABLE _private_tasks
lock table :GRAPHILE_WORKER_SCHEMA.:TABLE in share row exclusive mode
