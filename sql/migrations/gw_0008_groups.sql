-- Groups: jobs that wait, outside the jobs table, until the members of their group have ended. No worker, in any language,
-- can run them early. An edge is a member that has not ended.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_waiting (
  id bigint generated always as identity constraint gw_waiting_pkey primary key,
  job json not null,
  on_failure text not null constraint gw_waiting_on_failure_check check (on_failure in ('hold', 'cancel', 'run')),
  members integer not null,
  created_at timestamptz not null default now(),
  checked_at timestamptz not null default now()
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_waiting enable row level security;

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_edges (
  job_id bigint not null,
  waiting_id bigint not null,
  constraint gw_edges_pkey primary key (job_id, waiting_id)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_edges enable row level security;

create index if not exists gw_edges_waiting_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_edges (waiting_id);

\ir parts/end_group_members.sql
