-- What history holds: rows, counted as far as a status counts them, and by estimates of its partitions; whether jobs ended
-- by others are recorded, and whether the default partition is attached.
\set TABLE parts
select
  (select count(*) from (select from :GRAPHILE_WORKER_SCHEMA._private_gw_history limit 10001) as some_rows),
  case
    when bool_and(estimated.rows is not null or pg_relation_size(parts.oid::regclass) = 0)
    then coalesce(sum(estimated.rows), 0::float8)
  end,
  coalesce(sum(pg_total_relation_size(parts.oid::regclass)), 0)::bigint,
  (
    select count(*)
      from (select from :GRAPHILE_WORKER_SCHEMA._private_gw_history_default limit 10001) as waiting
  ),
  count(*) filter (
    where parts.relname::text ~ '^_private_gw_history_[0-9]{8}$'::text
      and to_date(right(parts.relname::text, 8), 'YYYYMMDD'::text) < (now() at time zone 'UTC'::text)::date
  ),
  (select date_part('epoch', max(history.finished_at)) from :GRAPHILE_WORKER_SCHEMA._private_gw_history as history),
  (
    select triggers.tgargs
      from pg_trigger as triggers
      join pg_class as tables on tables.oid = triggers.tgrelid
      join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
     where namespaces.nspname = %(schema)s::text
       and tables.relname = '_private_jobs'
       and triggers.tgname = '_private_gw_record_others'
  ),
  coalesce(bool_or(parts.relname = '_private_gw_history_default'), false)
  from pg_inherits
  join pg_class as parts on parts.oid = pg_inherits.inhrelid
  join pg_class as history on history.oid = pg_inherits.inhparent
  join pg_namespace as namespaces on namespaces.oid = history.relnamespace
 cross join lateral (
   select
     \ir parts/estimated_rows.sql
     as rows
 ) as estimated
 where namespaces.nspname = %(schema)s::text
   and history.relname = '_private_gw_history'
