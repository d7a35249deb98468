-- Limits for each value of a field of the payload, for example of a tenant. Their buckets are kept by value.
-- `gw limit` adds an index of the jobs of such a task, in which claims find the jobs of one value behind those of
-- another.

alter table :GRAPHILE_WORKER_SCHEMA._private_gw_limits add column if not exists field text;

alter table :GRAPHILE_WORKER_SCHEMA._private_gw_buckets
  add column if not exists value text collate pg_catalog."C" not null default '',
  drop constraint if exists gw_buckets_pkey,
  add constraint gw_buckets_pkey primary key (task, value);

-- The value of a field in a payload, at a dotted path; without one it is the empty text. The index holds 200
-- characters.
-- Escapes such as \u0000 may be no valid text. Only payloads with escapes pay for the handler.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_field_value(payload json, field text)
returns text
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $gw$
begin
  if strpos(payload::text, '\u') = 0 then
    return left(coalesce(payload #>> string_to_array(field, '.'), ''), 200);
  end if;
  begin
    return left(coalesce(payload #>> string_to_array(field, '.'), ''), 200);
  exception when others then
    return '';
  end;
end;
$gw$;
