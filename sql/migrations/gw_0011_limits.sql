-- Limits of tasks across all gw workers: how many of their jobs are locked at a time, and how many start per period.
-- The bucket of a limit has a table of its own, because each claim of such a task writes to it.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_limits (
  task text constraint gw_limits_pkey primary key,
  most_running integer constraint gw_limits_most_running_check check (most_running > 0),
  per_period double precision constraint gw_limits_per_period_check check (per_period > 0),
  period_seconds double precision constraint gw_limits_period_seconds_check check (period_seconds > 0),
  burst double precision constraint gw_limits_burst_check check (burst >= 1),
  set_by text not null,
  set_at timestamptz not null default now()
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_limits enable row level security;

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_buckets (
  task text constraint gw_buckets_pkey primary key,
  tokens double precision not null,
  filled_at timestamptz not null
) with (fillfactor = 50);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_buckets enable row level security;
