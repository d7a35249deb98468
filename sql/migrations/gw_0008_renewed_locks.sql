-- Locks that were renewed, and when their attempts started; and which claim of a job an operator wants to cancel.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks (
  worker_id text not null,
  job_id bigint not null,
  started_at timestamptz not null,
  locked_at timestamptz not null,
  constraint gw_renewed_locks_pkey primary key (worker_id, job_id)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks enable row level security;
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations add column if not exists locked_at timestamptz;
