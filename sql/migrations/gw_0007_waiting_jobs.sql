-- Jobs that wait for others. A waiting job is a row of the jobs table with `run_at = 'infinity'`: no worker, in any
-- language, runs it early. When all jobs that it waits for have ended, it gets the time that is kept here.
-- Early versions kept the job of a group outside the jobs table until then; such groups are carried over.

drop function if exists :GRAPHILE_WORKER_SCHEMA._private_gw_end_members(bigint[]);

do $gw$
declare
  v_schema text := :'GRAPHILE_WORKER_SCHEMA';
begin
  if exists (
       select
         from pg_attribute
        where attrelid = to_regclass(format('%I._private_gw_waiting', v_schema))
          and attname = 'job'
          and not attisdropped
     ) then
    execute format('alter table %I._private_gw_waiting rename to _private_gw_early_waiting', v_schema);
    execute format('alter table %I._private_gw_edges rename to _private_gw_early_edges', v_schema);
    execute format('alter table %I._private_gw_early_waiting rename constraint gw_waiting_pkey to gw_early_waiting_pkey', v_schema);
    execute format('alter table %I._private_gw_early_edges rename constraint gw_edges_pkey to gw_early_edges_pkey', v_schema);
    execute format('drop index if exists %I.gw_edges_waiting_index', v_schema);
  end if;
end;
$gw$;

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

do $gw$
declare
  v_schema text := :'GRAPHILE_WORKER_SCHEMA';
  v_early record;
begin
  if to_regclass(format('%I._private_gw_early_waiting', v_schema)) is null then
    return;
  end if;
  for v_early in execute format(
    'select job, on_failure, array(select job_id from %I._private_gw_early_edges where waiting_id = waiting.id) as after'
    '  from %I._private_gw_early_waiting as waiting order by id', v_schema, v_schema
  ) loop
    perform :GRAPHILE_WORKER_SCHEMA._private_gw_add_waiting(v_early.job, v_early.after, v_early.on_failure);
  end loop;
  execute format('drop table %I._private_gw_early_waiting, %I._private_gw_early_edges', v_schema, v_schema);
end;
$gw$;
