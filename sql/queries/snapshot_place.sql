-- The server, role and database, and which tables and indexes of gw the schema has; reads no row of the queue.
-- The session is read-only by its default; this transaction always is.
select
  date_part('epoch', now()),
  current_setting('server_version'),
  current_database()::text,
  current_user::text,
  host(inet_server_addr()),
  inet_server_port(),
  date_part('epoch', pg_postmaster_start_time()),
  pg_is_in_recovery(),
  pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean,
  'all' <>
  \set TABLE %(jobs_table)s::regclass::oid
  \set COMMAND r
  \ir parts/rows_shown.sql
  ,
  to_regclass(%(workers_table)s::text) is not null,
  to_regclass(%(rust_workers_table)s::text) is not null,
  array(
    select names.relname::text
      from pg_catalog.pg_index as indexes
      join pg_catalog.pg_class as names on names.oid = indexes.indexrelid
     where indexes.indrelid = %(jobs_table)s::regclass
       and indexes.indisvalid
  ),
  to_regclass(%(renewed_table)s::text) is not null,
  has_table_privilege(%(jobs_table)s, 'update') and has_table_privilege(%(jobs_table)s, 'delete')
