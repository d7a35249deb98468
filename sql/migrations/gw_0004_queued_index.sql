-- Claiming the next jobs of a few queues without walking every job that has no queue.

create index if not exists jobs_gw_queued_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (priority, run_at, id)
  where is_available = true and job_queue_id is not null;
