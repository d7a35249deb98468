-- Running workers and when they last said so; the jobs of one that went silent can be given back.

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
