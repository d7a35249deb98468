-- The sessions of this database with these numbers, and those whose transactions have been open for longest.
select
  \set SESSION sessions
  \ir parts/session_columns.sql
from pg_stat_activity as sessions
where sessions.datname = current_database()
  and sessions.pid <> pg_backend_pid()
  and (
    sessions.pid = any(%(pids)s::int[])
    or (sessions.backend_type = 'client backend' and sessions.xact_start is not null)
  )
order by sessions.xact_start nulls last, sessions.pid
limit %(most)s::bigint
