-- The server's version, clock, role and settings, and the process that serves this connection.
-- Read-only mode is read from the session's default, because the client may have set it for this transaction only.
select current_setting('server_version'),
       date_part('epoch', clock_timestamp()),
       pg_backend_pid(),
       current_user::text,
       pg_is_in_recovery()
         or (select reset_val = 'on' from pg_settings where name = 'default_transaction_read_only'),
       current_setting('autovacuum')::boolean
