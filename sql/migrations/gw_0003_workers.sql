-- Running workers and their last heartbeats; a sweep recovers the jobs of a dead one.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_workers (
  id text constraint gw_workers_pkey primary key,
  started_at timestamptz not null,
  last_heartbeat_at timestamptz not null,
  host text,
  pid integer,
  version text,
  metadata jsonb
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_workers enable row level security;
create index if not exists gw_workers_last_heartbeat_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_workers (last_heartbeat_at);
