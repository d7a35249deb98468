-- Indexes to claim the next jobs of a few queues without reading all jobs that have no queue, and to step from queue to
-- queue without reading the jobs of locked queues.
-- Sessions that come later wait behind this one for the table, so the lock timeout is short: see the next step.

set local lock_timeout = '2s';

create index if not exists jobs_gw_queued_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (priority, run_at, id)
  where is_available = true and job_queue_id is not null;

create index if not exists jobs_gw_queue_heads_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (job_queue_id, priority, run_at, id)
  where is_available = true and job_queue_id is not null;
