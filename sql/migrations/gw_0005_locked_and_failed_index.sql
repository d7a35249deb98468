-- Finding the jobs that workers hold, and those that failed for good, without reading the whole table.
-- Both conditions are those of the states `running` and `failed`. The locked ones are ordered by id, which does not
-- change: an index of changing values could not reuse the space of jobs that are done before it is vacuumed.

create index if not exists jobs_gw_locked_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (id)
  where locked_at is not null;

create index if not exists jobs_gw_failed_index
  on :GRAPHILE_WORKER_SCHEMA._private_jobs (run_at, id)
  where locked_at is null and attempts >= max_attempts;
