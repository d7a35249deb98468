-- Tell what is installed in a schema, be it missing, older, newer or half ours.
-- table_to_xml reads a ledger only where there is one, with the columns it has; a plain select would fail to parse.
-- Objects count, not numbers: the ancestors gave the same number to different things.
select current_setting('server_version_num')::integer as server_version,
       current_user::text as role_name,
       namespace.oid is not null as schema_exists,
       (select table_to_xml(pg_class.oid, false, false, '')::text
          from pg_class
         where relnamespace = namespace.oid and relname = 'migrations' and relkind = 'r') as shared_ledger,
       (select table_to_xml(pg_class.oid, false, false, '')::text
          from pg_class
         where relnamespace = namespace.oid and relname = '_private_gw_migrations' and relkind = 'r') as own_ledger,
       array(select relname::text
               from pg_class
              where relnamespace = namespace.oid
                and relname in ('_private_gw_workers', 'jobs_gw_queued_index', 'jobs_gw_queue_heads_index',
                                '_private_workers')) as relations,
       exists (select from pg_proc
                where pronamespace = namespace.oid
                  and proname = 'add_jobs'
                  and position(%(repair_marker)s in prosrc) > 0) as is_repaired
  from (values (%(schema)s)) as wanted (name)
  left join pg_namespace as namespace on namespace.nspname = wanted.name;
