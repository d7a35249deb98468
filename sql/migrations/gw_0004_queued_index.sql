-- Claiming the next jobs of a few queues without walking every job that has no queue, and stepping from queue to queue
-- without walking every job of the queues that are held.
--
-- Everybody who comes later waits behind us for a transaction that keeps the table: see the next step.

set local lock_timeout = '2s';

create index if not exists jobs_gw_queued_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (priority, run_at, id)
  where is_available = true and job_queue_id is not null;

create index if not exists jobs_gw_queue_heads_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (job_queue_id, priority, run_at, id)
  where is_available = true and job_queue_id is not null;
