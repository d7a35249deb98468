-- What the server's statistics say of the table of jobs: they are counted as work is done and cost nothing to read.
-- They are asked for one by one: the view over them groups all indexes of the table, to plan which takes longer.
select
  coalesce(pg_stat_get_tuples_inserted(tables.oid), 0),
  coalesce(pg_stat_get_tuples_updated(tables.oid), 0),
  coalesce(pg_stat_get_tuples_deleted(tables.oid), 0),
  coalesce(pg_stat_get_live_tuples(tables.oid), 0),
  coalesce(pg_stat_get_dead_tuples(tables.oid), 0),
  date_part('epoch', greatest(pg_stat_get_last_autovacuum_time(tables.oid), pg_stat_get_last_vacuum_time(tables.oid)))
from pg_catalog.pg_class as tables
where tables.oid = %(jobs_table)s::regclass
