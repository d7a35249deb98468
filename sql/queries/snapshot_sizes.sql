-- The bytes of the table of jobs with its indexes, and estimates of how many jobs it has, wait and have failed.
-- An index knows how many rows it had when it was last vacuumed; its growth since then shows how many it may have now.
\set TABLE known
select
  pg_total_relation_size(%(jobs_table)s::regclass),
  coalesce(pg_stat_get_live_tuples(%(jobs_table)s::regclass), 0),
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
