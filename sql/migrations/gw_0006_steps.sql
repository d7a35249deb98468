-- Steps: what the task of a job has finished, or how far it came, so that a later attempt does not repeat it.
-- A row belongs to the job with this id and time of creation: a table of jobs that is truncated can give an id again.
-- A step that is not finished holds a cursor. Workers delete the rows of a job that is gone; where history keeps the
-- job, they stay until `kept_until`.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_steps (
  job_id bigint not null,
  name text not null,
  value json not null,
  finished boolean not null,
  attempt integer not null,
  saved_at timestamptz not null default now(),
  job_created_at timestamptz not null,
  kept_until timestamptz,
  constraint gw_steps_pkey primary key (job_id, name)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_steps enable row level security;

create index if not exists gw_steps_open_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_steps (job_id)
  where kept_until is null;
create index if not exists gw_steps_kept_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_steps (kept_until)
  where kept_until is not null;
