-- Cancel requests: a row waits here for the worker that runs the job, which deletes it on receipt.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations (
  pool text not null,
  job_id bigint not null,
  message text not null,
  retry boolean not null,
  asked_at timestamptz not null default now(),
  constraint gw_cancellations_pkey primary key (pool, job_id)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations enable row level security;
