-- Jobs that expire unless they have started in time. The time is in a flag of the job, which every claim returns, so no
-- claim reads this table. Workers find expired jobs by it, and only the flag counts.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_expiring (
  job_id bigint constraint gw_expiring_pkey primary key,
  expires_at timestamptz not null
);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_expiring enable row level security;

create index if not exists gw_expiring_expires_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_expiring (expires_at);

-- The time in the flags of a job, as microseconds since 1970 behind `gw:expires:`; null without one.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_expires_at(flags jsonb)
returns timestamptz
language sql stable strict
set search_path = pg_catalog, pg_temp
as $gw$
  select to_timestamp(max(substring(flag from '^gw:expires:(\d{1,18})$')::float8) / 1000000)
    from jsonb_object_keys(case jsonb_typeof(flags) when 'object' then flags else '{}' end) as flag
$gw$;

-- Flags for a new job, with the one of the time at which it expires unless that is null.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_flags_expiring(flags text[], expires_at timestamptz)
returns text[]
language sql stable
set search_path = pg_catalog, pg_temp
as $gw$
  select case
           when expires_at is null then flags
           else array_append(flags, 'gw:expires:' || (greatest(date_part('epoch', expires_at), 0) * 1000000)::bigint)
         end
$gw$;
