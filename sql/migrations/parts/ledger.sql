-- The ledger all workers on this schema share. Those of before revision 15 had no flag for breaking steps.
create table if not exists :GRAPHILE_WORKER_SCHEMA.migrations (
  id integer constraint migrations_pkey primary key,
  ts timestamptz not null default now(),
  breaking boolean not null default false
);
alter table :GRAPHILE_WORKER_SCHEMA.migrations add column if not exists breaking boolean not null default false;
update :GRAPHILE_WORKER_SCHEMA.migrations set breaking = true where id in (1, 3, 11, 13, 14, 16, 19) and not breaking;
