-- End a session of this database, and return whether it was there: only one that is still of the role and program that
-- the caller has seen, because the number may belong to another session by now.
select pg_catalog.pg_terminate_backend(sessions.pid)
  from pg_catalog.pg_stat_activity as sessions
 where sessions.pid = %(pid)s::int
   and sessions.datname = current_database()
   and sessions.usename::text is not distinct from %(role)s::text
   and nullif(sessions.application_name, '') is not distinct from %(application)s::text
   and sessions.pid <> pg_catalog.pg_backend_pid()
