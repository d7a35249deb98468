-- The sessions that have the advisory lock of the sweep or wait for it; graphile_worker_rs uses the same lock.
select
  locks.granted,
  \set SESSION sessions
  \ir parts/session_columns.sql
from pg_locks as locks
join pg_stat_activity as sessions on sessions.pid = locks.pid
where locks.locktype = 'advisory'
  and locks.database = (select databases.oid from pg_database as databases where databases.datname = current_database())
  and locks.classid = 1196905043::oid
  and locks.objid = 1398228304::oid
  and locks.objsubid = 2
order by locks.granted desc, sessions.pid
limit %(most)s
