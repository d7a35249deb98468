-- Indexes to find locked and permanently failed jobs without reading the whole table.
-- The conditions are those of the states `running` and `failed`. Each claim writes to the index of locked jobs;
-- `locked_at` is the cheapest column, because the locks of one claim are equal and share an entry. Only a job's last
-- failure writes to the index of failed jobs. Building an index blocks writes to the table, less than half a second for
-- each million jobs. To avoid that, build both beforehand, as written here but `concurrently`; this step then finds
-- them. Sessions that come later wait behind this one for the table, so the lock timeout is short and the step is
-- retried.

set local lock_timeout = '2s';

create index if not exists jobs_gw_locked_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (locked_at)
  where locked_at is not null;

create index if not exists jobs_gw_failed_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (run_at, id)
  where locked_at is null and attempts >= max_attempts;
