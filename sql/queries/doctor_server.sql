-- What kind of server this is, what time it has, and which of its processes serves us.
-- Asked is how sessions begin here: one that its client has since held to reading alone says nothing about the server.
select current_setting('server_version'),
       current_setting('server_version_num')::int,
       date_part('epoch', clock_timestamp()),
       pg_backend_pid(),
       current_user::text,
       pg_is_in_recovery()
         or (select reset_val = 'on' from pg_settings where name = 'default_transaction_read_only'),
       current_setting('autovacuum')::boolean
