-- What kind of server this is, what time it has, and which of its processes serves us.
select current_setting('server_version'),
       current_setting('server_version_num')::int,
       date_part('epoch', clock_timestamp()),
       pg_backend_pid(),
       current_user::text,
       pg_is_in_recovery() or current_setting('transaction_read_only')::boolean,
       current_setting('autovacuum')::boolean
