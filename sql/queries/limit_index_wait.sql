-- Wait a little while another session builds an index of the jobs; no row: none does.
-- A build that waits for the lock of another one has a snapshot for which that one waits: the server aborts one of them.
-- `relid` is null where the role may not see what the other session does.
select pg_catalog.pg_sleep(0.05::double precision)::text
 where exists (
         select
           from pg_stat_progress_create_index as build
          where build.datid = (select oid from pg_database where datname = current_database())
            and build.pid <> pg_backend_pid()
            and (
              build.relid is null
              or build.relid = to_regclass(pg_catalog.format('%%I._private_jobs', %(schema)s::text))::oid
            )
       )
