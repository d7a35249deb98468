-- Finding the jobs that workers hold, and those that failed for good, without reading the whole table.
-- The conditions are those of the states `running` and `failed`. Each claim writes to the index of locked jobs; by any
-- other column that was dearer, for the locks of one claim are equal and share an entry. Nothing but a job's last failure
-- writes to the index of failed ones.
--
-- While an index is built nobody writes to the table: less than half a second for each million jobs. Whoever cannot have
-- that builds both beforehand, as written here and `concurrently`; then there is nothing left to do. Everybody who comes
-- later waits behind us for a transaction that keeps the table, so we do not wait for it long but come again.

set local lock_timeout = '2s';

create index if not exists jobs_gw_locked_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (locked_at)
  where locked_at is not null;

create index if not exists jobs_gw_failed_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (run_at, id)
  where locked_at is null and attempts >= max_attempts;
