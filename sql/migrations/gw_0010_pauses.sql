-- What operators have paused, and the revision of these rules: workers report which revision they apply.
-- Each change increments the revision in its transaction, so revisions become visible in their order.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules (
  id smallint constraint gw_claim_rules_pkey primary key constraint gw_claim_rules_id_check check (id = 1),
  revision bigint not null
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules enable row level security;

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_pauses (
  kind text not null constraint gw_pauses_kind_check check (kind in ('task', 'queue', 'flag', 'all')),
  name text not null,
  until timestamptz,
  reason text,
  paused_by text not null,
  paused_at timestamptz not null default now(),
  constraint gw_pauses_pkey primary key (kind, name)
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_pauses enable row level security;

alter table :GRAPHILE_WORKER_SCHEMA._private_gw_workers add column if not exists claim_rules_revision bigint;
