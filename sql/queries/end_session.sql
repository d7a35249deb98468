-- End the session of a lost claim, and return whether it has ended; null if that cannot be known.
-- A request that was delayed on its way can still arrive there and lock jobs. Behind a pooler the process id that a
-- connection reports is not the server's, so nothing is known of any session there. The number may belong to another
-- session by now: only one of this role and name is ended, and only one that is older than this connection.
with ended as materialized (
  select pg_catalog.pg_terminate_backend(sessions.pid)
    from pg_catalog.pg_stat_activity as own
    join pg_catalog.pg_stat_activity as sessions
      on sessions.usesysid = own.usesysid
     and sessions.application_name = own.application_name
     and sessions.backend_start <= own.backend_start
   where own.pid = pg_catalog.pg_backend_pid()
     and own.pid = %(own_pid)s::int
     and sessions.pid = %(pid)s::int
     and sessions.pid <> own.pid
)
select case
         when pg_catalog.pg_backend_pid() = %(own_pid)s::int
         then (select count(*) from ended) = 0
       end
