-- What the server's statistics say of the table of jobs: they are counted as work is done and cost nothing to read.
-- An index knows how many rows it had when it was last vacuumed; its size since then tells how many it may have now.
select
  coalesce(counted.n_tup_ins, 0),
  coalesce(counted.n_tup_upd, 0),
  coalesce(counted.n_tup_del, 0),
  coalesce(counted.n_live_tup, 0),
  coalesce(counted.n_dead_tup, 0),
  date_part('epoch', greatest(counted.last_autovacuum, counted.last_vacuum)),
  pg_total_relation_size(tables.oid),
  (select known.reltuples * (pg_relation_size(known.oid) / current_setting('block_size')::int) / known.relpages
     from pg_catalog.pg_class as known
    where known.oid = to_regclass(%(waiting_index)s::text)
      and known.reltuples > 0
      and known.relpages > 0),
  (select known.reltuples * (pg_relation_size(known.oid) / current_setting('block_size')::int) / known.relpages
     from pg_catalog.pg_class as known
    where known.oid = to_regclass(%(failed_index)s::text)
      and known.reltuples > 0
      and known.relpages > 0)
from pg_catalog.pg_class as tables
left join pg_catalog.pg_stat_all_tables as counted on counted.relid = tables.oid
where tables.oid = %(jobs_table)s::regclass
