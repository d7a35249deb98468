-- Install revision 20 in one step into a schema that has nothing of ours yet.
-- Names, column order and constraints are the contract that the Node.js worker and we share.

\ir parts/ledger.sql

-- The rows come first: of several installers, one inserts them and the others wait here and then find all done.
insert into :GRAPHILE_WORKER_SCHEMA.migrations (id, breaking)
  select number, number in (1, 3, 11, 13, 14, 16, 19) from generate_series(1, 20) as number;

create table :GRAPHILE_WORKER_SCHEMA._private_tasks (
  id integer generated always as identity constraint tasks_pkey primary key,
  identifier text not null constraint tasks_identifier_key unique,
  constraint tasks_identifier_check check (length(identifier) <= 128)
);
alter sequence :GRAPHILE_WORKER_SCHEMA._private_tasks_id_seq rename to tasks_id_seq;
alter table :GRAPHILE_WORKER_SCHEMA._private_tasks enable row level security;

create table :GRAPHILE_WORKER_SCHEMA._private_job_queues (
  id integer generated always as identity constraint job_queues_pkey1 primary key,
  queue_name text not null constraint job_queues_queue_name_key unique,
  locked_at timestamptz,
  locked_by text,
  is_available boolean not null generated always as (locked_at is null) stored,
  constraint job_queues_queue_name_check check (length(queue_name) <= 128)
);
alter sequence :GRAPHILE_WORKER_SCHEMA._private_job_queues_id_seq rename to job_queues_id_seq;
alter table :GRAPHILE_WORKER_SCHEMA._private_job_queues enable row level security;

-- No foreign keys: checking them would cost each insert two more index look-ups and two row locks.
create table :GRAPHILE_WORKER_SCHEMA._private_jobs (
  id bigint generated always as identity constraint jobs_pkey1 primary key,
  job_queue_id integer,
  task_id integer not null,
  payload json not null default '{}',
  priority smallint not null default 0,
  run_at timestamptz not null default now(),
  attempts smallint not null default 0,
  max_attempts smallint not null default 25 constraint jobs_max_attempts_check check (max_attempts >= 1),
  last_error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  key text constraint jobs_key_key1 unique constraint jobs_key_check check (length(key) > 0 and length(key) <= 512),
  locked_at timestamptz,
  locked_by text,
  revision integer not null default 0,
  flags jsonb,
  is_available boolean not null generated always as (locked_at is null and attempts < max_attempts) stored
);
alter sequence :GRAPHILE_WORKER_SCHEMA._private_jobs_id_seq rename to jobs_id_seq1;
alter table :GRAPHILE_WORKER_SCHEMA._private_jobs enable row level security;

create index jobs_main_index on :GRAPHILE_WORKER_SCHEMA._private_jobs (priority, run_at)
  include (id, task_id, job_queue_id)
  where is_available = true;
create index jobs_no_queue_index on :GRAPHILE_WORKER_SCHEMA._private_jobs (priority, run_at)
  include (id, task_id)
  where is_available = true and job_queue_id is null;

create table :GRAPHILE_WORKER_SCHEMA._private_known_crontabs (
  identifier text constraint known_crontabs_pkey primary key,
  known_since timestamptz not null,
  last_execution timestamptz
);
alter table :GRAPHILE_WORKER_SCHEMA._private_known_crontabs enable row level security;

create type :GRAPHILE_WORKER_SCHEMA.job_spec as (
  identifier text,
  payload json,
  queue_name text,
  run_at timestamptz,
  max_attempts smallint,
  job_key text,
  priority smallint,
  flags text[]
);

\ir parts/jobs_view.sql
\ir parts/add_jobs.sql
\ir parts/add_job.sql
\ir parts/complete_jobs.sql
\ir parts/permanently_fail_jobs.sql
\ir parts/reschedule_jobs.sql
\ir parts/remove_job.sql
\ir parts/force_unlock_workers.sql

-- Not announced as breaking: the channel reaches the workers of every schema in the database, and here is nobody yet.
select pg_notify('worker:migrate', '{"migrationNumber":20,"breaking":false}');
