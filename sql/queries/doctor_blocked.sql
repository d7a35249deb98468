-- The sessions of this database that wait for a lock, what each waits for, and the processes that keep it waiting.
-- Blockers are only queried for sessions that wait: the query briefly locks the whole lock table.
select
  \set SESSION waiting
  \ir parts/session_columns.sql
  ,
  coalesce(wanted.mode, 'a lock'),
  wanted.relation,
  wanted.locktype,
  pg_blocking_pids(waiting.pid)
from pg_stat_activity as waiting
left join lateral (
  select locks.mode, locks.locktype, tables.relname::text as relation
    from pg_locks as locks
    left join pg_class as tables on tables.oid = locks.relation
   where locks.pid = waiting.pid
     and not locks.granted
   limit 1
) as wanted on true
where waiting.datname = current_database()
  and waiting.wait_event_type = 'Lock'
  and waiting.pid <> pg_backend_pid()
order by waiting.state_change
limit %(most)s::bigint
