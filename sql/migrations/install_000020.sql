-- Install revision 20 in one step into a schema that has nothing of ours yet.
-- Names, column order and constraints are the contract that the Node.js worker and we share. The names of the
-- `not null` constraints are part of it: PostgreSQL keeps them since version 18 and forgets them before. They look odd
-- because Graphile Worker created its tables under other names, beside older ones.

\ir parts/ledger.sql

-- The rows come first: of several installers, one inserts them and the others wait here and then find all done.
insert into :GRAPHILE_WORKER_SCHEMA.migrations (id, breaking)
  select number, number in (1, 3, 11, 13, 14, 16, 19) from generate_series(1, 20) as number;

create table :GRAPHILE_WORKER_SCHEMA._private_tasks (
  id integer constraint tasks_id_not_null not null generated always as identity,
  identifier text constraint tasks_identifier_not_null not null constraint tasks_identifier_key unique,
  constraint tasks_pkey primary key (id),
  constraint tasks_identifier_check check (length(identifier) <= 128)
);
alter sequence :GRAPHILE_WORKER_SCHEMA._private_tasks_id_seq rename to tasks_id_seq;
alter table :GRAPHILE_WORKER_SCHEMA._private_tasks enable row level security;

create table :GRAPHILE_WORKER_SCHEMA._private_job_queues (
  id integer constraint job_queues_id_not_null not null generated always as identity,
  queue_name text constraint job_queues_queue_name_not_null1 not null constraint job_queues_queue_name_key unique,
  locked_at timestamptz,
  locked_by text,
  is_available boolean constraint job_queues_is_available_not_null not null
    generated always as (locked_at is null) stored,
  constraint job_queues_pkey1 primary key (id),
  constraint job_queues_queue_name_check check (length(queue_name) <= 128)
);
alter sequence :GRAPHILE_WORKER_SCHEMA._private_job_queues_id_seq rename to job_queues_id_seq;
alter table :GRAPHILE_WORKER_SCHEMA._private_job_queues enable row level security;

-- No foreign keys: checking them would cost each insert two more index look-ups and two row locks.
create table :GRAPHILE_WORKER_SCHEMA._private_jobs (
  id bigint constraint jobs_id_not_null1 not null generated always as identity,
  job_queue_id integer,
  task_id integer constraint jobs_task_id_not_null not null,
  payload json constraint jobs_payload_not_null1 not null default '{}',
  priority smallint constraint jobs_priority_not_null1 not null default 0,
  run_at timestamptz constraint jobs_run_at_not_null1 not null default now(),
  attempts smallint constraint jobs_attempts_not_null1 not null default 0,
  max_attempts smallint constraint jobs_max_attempts_not_null1 not null default 25,
  last_error text,
  created_at timestamptz constraint jobs_created_at_not_null1 not null default now(),
  updated_at timestamptz constraint jobs_updated_at_not_null1 not null default now(),
  key text,
  locked_at timestamptz,
  locked_by text,
  revision integer constraint jobs_revision_not_null1 not null default 0,
  flags jsonb,
  is_available boolean constraint jobs_is_available_not_null not null
    generated always as (locked_at is null and attempts < max_attempts) stored,
  constraint jobs_pkey1 primary key (id),
  constraint jobs_key_key1 unique (key),
  constraint jobs_key_check check (length(key) > 0 and length(key) <= 512),
  constraint jobs_max_attempts_check check (max_attempts >= 1)
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
  identifier text constraint known_crontabs_identifier_not_null not null constraint known_crontabs_pkey primary key,
  known_since timestamptz constraint known_crontabs_known_since_not_null not null,
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
\ir parts/remove_job.sql
\ir parts/operator_functions.sql

-- Not announced as breaking: the channel reaches the workers of every schema in the database, and this one has none yet.
select pg_notify('worker:migrate', '{"migrationNumber":20,"breaking":false}');
