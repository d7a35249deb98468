-- The server, role and database, and which tables and indexes of gw the schema has; reads no row of the queue.
-- The session is read-only by its default; this transaction always is.
select
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
  \set COMMAND ''r''
  \ir parts/rows_shown.sql
  ,
  \ir parts/own_objects.sql
  ,
  has_table_privilege(%(jobs_table)s::text, 'update') and has_table_privilege(%(jobs_table)s::text, 'delete')
