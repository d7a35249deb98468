-- The sessions of this database with these numbers, and those whose transactions have been open for longest.
select
  sessions.pid,
  sessions.usename::text,
  sessions.application_name,
  sessions.state,
  date_part('epoch', clock_timestamp() - sessions.state_change),
  date_part('epoch', clock_timestamp() - sessions.xact_start),
  left(sessions.query, 200)
from pg_stat_activity as sessions
where sessions.datname = current_database()
  and sessions.pid <> pg_backend_pid()
  and (
    sessions.pid = any(%(pids)s::int[])
    or (sessions.backend_type = 'client backend' and sessions.xact_start is not null)
  )
order by sessions.xact_start nulls last, sessions.pid
limit %(most)s
