-- Indexes of the jobs table. Building one blocks writes to the table, less than half a second for each million jobs. To
-- avoid that, build them beforehand, as written here but `concurrently`; this step then finds them.

-- To claim the next jobs of a few queues without reading all jobs that have no queue, and to step from queue to queue
-- without reading the jobs of locked queues.

create index if not exists jobs_gw_queued_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (priority, run_at, id)
  where is_available = true and job_queue_id is not null;

create index if not exists jobs_gw_queue_heads_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (job_queue_id, priority, run_at, id)
  where is_available = true and job_queue_id is not null;

-- To find locked and permanently failed jobs without reading the whole table. The conditions are those of the states
-- `running` and `failed`. Each claim writes to the index of locked jobs; `locked_at` is the cheapest column, because the
-- locks of one claim are equal and share an entry. Only a job's last failure writes to the index of failed jobs.

create index if not exists jobs_gw_locked_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (locked_at)
  where locked_at is not null;

create index if not exists jobs_gw_failed_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (run_at, id)
  where locked_at is null and attempts >= max_attempts;
