-- History: what became of jobs, one row for each ended attempt. A row is written by the statement that settles the
-- attempt. `final` marks the row of a job that has left the queue.
-- The partitions are days of `expires_at`, so that each task can have a period of its own and expiry never deletes rows
-- one by one. Rows whose day has no partition yet go to the default partition.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_history (
  job_id bigint not null,
  attempt integer not null,
  max_attempts integer not null,
  task text not null,
  queue_name text,
  key text,
  state text not null,
  final boolean not null,
  result json,
  error text,
  error_type text,
  traceback text,
  worker_id text,
  payload json,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz not null,
  expires_at timestamptz not null
) partition by range (expires_at);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_history enable row level security;

create index if not exists gw_history_job_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_history (job_id);
create index if not exists gw_history_task_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_history (task, finished_at);
create index if not exists gw_history_finished_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_history (finished_at);
-- Few rows are not of completed jobs, and operators search for those.
create index if not exists gw_history_failed_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_history (finished_at)
  where state <> 'completed';

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_history_default
  partition of :GRAPHILE_WORKER_SCHEMA._private_gw_history default;
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_history_default enable row level security;
