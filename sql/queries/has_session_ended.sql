-- Return whether a session of this server has ended. Behind a pooler the process id that a connection reports is not the
-- server's, so nothing is known of any session there: false.
select pg_catalog.pg_backend_pid() = %(own_pid)s::int
   and not exists (select from pg_catalog.pg_stat_activity as sessions where sessions.pid = %(pid)s::int)
