-- The tables of gw's features; each is empty until its feature is used.

-- Running workers and their last heartbeats; a sweep recovers the jobs of a dead one.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_workers (
  id text constraint gw_workers_pkey primary key,
  started_at timestamptz not null,
  last_heartbeat_at timestamptz not null,
  host text,
  pid integer,
  version text,
  metadata jsonb,
  claim_rules_revision bigint
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_workers enable row level security;
create index if not exists gw_workers_last_heartbeat_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_workers (last_heartbeat_at);

-- Cancel requests: a row waits here for the worker that runs the job, which deletes it on receipt. `locked_at` is the
-- claim of the job that an operator wants to cancel.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations (
  pool text not null,
  job_id bigint not null,
  message text not null,
  retry boolean not null,
  asked_at timestamptz not null default now(),
  locked_at timestamptz,
  constraint gw_cancellations_pkey primary key (pool, job_id)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations enable row level security;

-- Locks that were renewed, and when their attempts started.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks (
  worker_id text not null,
  job_id bigint not null,
  started_at timestamptz not null,
  locked_at timestamptz not null,
  constraint gw_renewed_locks_pkey primary key (worker_id, job_id)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks enable row level security;

-- What operators have paused, and the revision of these rules: workers report which revision they apply.
-- Each change increments the revision in its transaction, so revisions become visible in their order.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules (
  id smallint constraint gw_claim_rules_pkey primary key constraint gw_claim_rules_id_check check (id = 1),
  revision bigint not null
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules enable row level security;

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_pauses (
  kind text not null constraint gw_pauses_kind_check check (kind in ('task', 'queue', 'flag', 'cron', 'all')),
  name text not null,
  until timestamptz,
  reason text,
  paused_by text not null,
  paused_at timestamptz not null default now(),
  constraint gw_pauses_pkey primary key (kind, name)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_pauses enable row level security;

-- Limits of tasks across all gw workers: how many of their jobs are locked at a time, and how many start per period.
-- The bucket of a limit has a table of its own, because each claim of such a task writes to it. A limit with `field`
-- counts for each value of that field of the payload, for example of a tenant, and has a bucket for each. `gw limit`
-- adds an index of the jobs of such a task, in which claims find the jobs of one value behind those of another.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_limits (
  task text constraint gw_limits_pkey primary key,
  most_running integer constraint gw_limits_most_running_check check (most_running > 0),
  per_period double precision constraint gw_limits_per_period_check check (per_period > 0),
  period_seconds double precision constraint gw_limits_period_seconds_check check (period_seconds > 0),
  burst double precision constraint gw_limits_burst_check check (burst >= 1),
  field text,
  set_by text not null,
  set_at timestamptz not null default now()
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_limits enable row level security;

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_buckets (
  task text not null,
  value text collate pg_catalog."C" not null default '',
  tokens double precision not null,
  filled_at timestamptz not null,
  constraint gw_buckets_pkey primary key (task, value)
) with (fillfactor = 50);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_buckets enable row level security;

-- The value of a field in a payload, at a dotted path; without one it is the empty text. The index holds 200
-- characters.
-- Escapes such as \u0000 may be no valid text. Only payloads with escapes pay for the handler. An `E` string means the
-- same whatever `standard_conforming_strings` is in the session that calls.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_field_value(payload json, field text)
returns text
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $gw$
begin
  if strpos(payload::text, E'\\u') = 0 then
    return left(coalesce(payload #>> string_to_array(field, '.'), ''), 200);
  end if;
  begin
    return left(coalesce(payload #>> string_to_array(field, '.'), ''), 200);
  exception when others then
    return '';
  end;
end;
$gw$;

-- What ran: one row for each worker, task and minute, which the worker writes when the minute is over. Rows are never
-- updated. `durations` counts the attempts by run time; the buckets are those of the histograms of `/metrics`.
-- `waited` of the starts were measured, and `wait_seconds` is the sum of the times from due to claimed.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_statistics (
  minute timestamptz not null,
  task text not null,
  worker_id text not null,
  completed integer not null,
  failed integer not null,
  permanently_failed integer not null,
  run_seconds double precision not null,
  durations integer[] not null,
  waited integer not null,
  wait_seconds double precision not null,
  constraint gw_statistics_pkey primary key (minute, task, worker_id)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_statistics enable row level security;

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

-- Jobs that expire unless they have started in time. The time is in a flag of the job, which every claim returns, so no
-- claim reads this table. Workers find expired jobs by it, and only the flag counts.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_expiring (
  job_id bigint constraint gw_expiring_pkey primary key,
  expires_at timestamptz not null
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_expiring enable row level security;

create index if not exists gw_expiring_expires_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_expiring (expires_at);
