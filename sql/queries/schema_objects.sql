-- Which of gw's own objects a schema has: the index of waiting jobs by queue, those of locked and of failed jobs, the
-- heartbeats of workers, its own and those of graphile_worker_rs, the renewed locks, the pauses, limits and groups.
select
  exists (
    select
      from pg_catalog.pg_index as indexes
      join pg_catalog.pg_attribute as firsts
        on firsts.attrelid = indexes.indrelid
       and firsts.attnum = indexes.indkey[0]
     where indexes.indrelid = %(jobs_table)s::regclass
       and indexes.indisvalid
       and firsts.attname = 'job_queue_id'
       and pg_catalog.pg_get_expr(indexes.indpred, indexes.indrelid) like '%%is_available%%'
  ),
  exists (select from pg_catalog.pg_index where indexrelid = to_regclass(%(locked_index)s::text) and indisvalid),
  exists (select from pg_catalog.pg_index where indexrelid = to_regclass(%(failed_index)s::text) and indisvalid),
  to_regclass(%(workers_table)s::text) is not null,
  to_regclass(%(rust_workers_table)s::text) is not null,
  to_regclass(%(renewed_table)s::text) is not null,
  to_regclass(%(pauses_table)s::text) is not null,
  to_regclass(%(limits_table)s::text) is not null,
  to_regclass(%(groups_table)s::text) is not null
