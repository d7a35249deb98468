-- The ledger of gw's additions to the shared schema; they never take a number in `migrations`.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_migrations (
  id integer constraint gw_migrations_pkey primary key,
  name text not null,
  applied_at timestamptz not null default now()
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_migrations enable row level security;
