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
