-- Jobs that expire unless they have started in time. The time is in a flag of the job, which every claim returns, so no
-- claim reads this table. Workers find expired jobs by it, and only the flag counts.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_expiring (
  job_id bigint constraint gw_expiring_pkey primary key,
  expires_at timestamptz not null
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_expiring enable row level security;

create index if not exists gw_expiring_expires_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_expiring (expires_at);
