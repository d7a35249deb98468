-- The sessions that have the advisory lock of sweeps or wait for it, and whether each one that has it may be sweeping.
-- graphile_worker_rs uses the same lock, and every role that can connect can take it. A sweep needs the right to change
-- jobs and queues, which a role that only adds jobs lacks, and its transaction takes seconds; a session that is in no
-- transaction is judged by its age. Roles without privileges see neither age of other roles' sessions, so those count as
-- recent.
select
  locks.granted,
  locks.granted
    and coalesce(
          has_schema_privilege(sessions.usesysid, jobs.relnamespace, 'usage')
            and has_table_privilege(sessions.usesysid, jobs.oid, 'update')
            and has_table_privilege(sessions.usesysid, queues.oid, 'update'),
          false
        )
    and coalesce(
          coalesce(sessions.xact_start, sessions.backend_start) > clock_timestamp() - interval '2 minutes',
          true
        ),
  \set SESSION sessions
  \ir parts/session_columns.sql
from pg_locks as locks
join pg_stat_activity as sessions on sessions.pid = locks.pid
left join pg_class as jobs on jobs.oid = to_regclass(pg_catalog.format('%%I._private_jobs', %(schema)s::text))::oid
left join pg_class as queues on queues.relnamespace = jobs.relnamespace and queues.relname = '_private_job_queues'
where locks.locktype = 'advisory'
  and locks.database = (select databases.oid from pg_database as databases where databases.datname = current_database())
  and locks.classid = 1196905043::oid
  and locks.objid = 1398228304::oid
  and locks.objsubid = 2
order by locks.granted desc, sessions.pid
limit %(most)s::bigint
