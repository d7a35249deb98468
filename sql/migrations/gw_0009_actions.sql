-- Actions: what operators did to jobs, workers and pauses. A batch of jobs is one row; workers write none.
-- The role, the program and the address are those of the session that acted; `by` is the name that it gave.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_actions (
  id bigint generated always as identity constraint gw_actions_pkey primary key,
  at timestamptz not null default now(),
  action text not null,
  by text not null,
  role text not null,
  program text,
  address text,
  job_ids bigint[] not null,
  targets text[] not null,
  details json,
  expires_at timestamptz not null
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_actions enable row level security;

create index if not exists gw_actions_jobs_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_actions using gin (job_ids);
create index if not exists gw_actions_expires_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_actions (expires_at);
