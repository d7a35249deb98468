-- What the server's statistics say of the table of jobs: they are counted as work is done and cost nothing to read.
-- They are asked for one by one: the view over them groups all indexes of the table, to plan which takes longer.
-- An index knows how many rows it had when it was last vacuumed; its growth since then shows how many it may have now.
\set TABLE known
select
  coalesce(pg_stat_get_tuples_inserted(tables.oid), 0),
  coalesce(pg_stat_get_tuples_updated(tables.oid), 0),
  coalesce(pg_stat_get_tuples_deleted(tables.oid), 0),
  coalesce(pg_stat_get_live_tuples(tables.oid), 0),
  coalesce(pg_stat_get_dead_tuples(tables.oid), 0),
  date_part('epoch', greatest(pg_stat_get_last_autovacuum_time(tables.oid), pg_stat_get_last_vacuum_time(tables.oid))),
  pg_total_relation_size(tables.oid),
  (
    select
      \ir parts/estimated_rows.sql
      from pg_catalog.pg_class as known
     where known.oid = to_regclass(%(waiting_index)s::text)
  ),
  (
    select
      \ir parts/estimated_rows.sql
      from pg_catalog.pg_class as known
     where known.oid = to_regclass(%(failed_index)s::text)
  )
from pg_catalog.pg_class as tables
where tables.oid = %(jobs_table)s::regclass
