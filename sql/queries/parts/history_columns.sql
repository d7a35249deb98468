-- The columns of history that a settling statement writes, in the order of parts/history_values.sql.
job_id, attempt, max_attempts, task, queue_name, key, worker_id, created_at, payload,
started_at, finished_at, expires_at, state, final
