-- Jobs that wait for others. A waiting job is a row of the jobs table with `run_at = 'infinity'`: no worker, in any
-- language, runs it early. When all jobs that it waits for have ended, it gets the time that is kept here.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_waiting (
  job_id bigint constraint gw_waiting_pkey primary key,
  after bigint[] not null,
  on_failure text not null constraint gw_waiting_on_failure_check check (on_failure in ('hold', 'cancel', 'run')),
  run_at timestamptz,
  delay_seconds double precision,
  checked_at timestamptz not null default now(),
  released_at timestamptz
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_waiting enable row level security;

-- An edge is a job that has not ended, and one that waits for it.
create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_edges (
  job_id bigint not null,
  waiting_id bigint not null,
  constraint gw_edges_pkey primary key (job_id, waiting_id)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_edges enable row level security;

create index if not exists gw_edges_waiting_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_edges (waiting_id);

\ir parts/end_members.sql
\ir parts/add_waiting.sql
