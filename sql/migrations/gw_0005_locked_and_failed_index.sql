-- Finding the jobs that workers hold, and those that failed for good, without reading the whole table.
-- The conditions are those of the states `running` and `failed`. Each claim writes to the index of locked jobs, and does
-- so at the price of a tenth of what it costs the server; by any other column it was dearer, for the locks of one claim
-- are equal and share an entry. Nothing but a job's last failure writes to the index of failed ones.

create index if not exists jobs_gw_locked_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (locked_at)
  where locked_at is not null;

create index if not exists jobs_gw_failed_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (run_at, id)
  where locked_at is null and attempts >= max_attempts;
