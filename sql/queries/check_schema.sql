-- Return what is installed in a schema, whether it is missing, older, newer or incomplete.
-- A ledger is read only where there is one, with the columns it has, so the statement that reads it must be made while
-- this one runs. ts_stat does that in every build of PostgreSQL: it runs a query and lists the words of its tsvectors.
-- The XML functions do it too, but not all servers have them. A word is a number, the flag, and the seconds since the
-- step was taken: `19:true:12`.
-- Only a table with PostgreSQL's own types counts as a ledger: a view, or a cast from a type of its owner's, could run code
-- with the rights of the role that asks.
-- Objects count, not numbers: Graphile Worker's implementations gave the same number to different things.
with namespace as (
  select oid, nspname from pg_namespace where nspname = %(schema)s::text
), relation as (
  select pg_class.oid, relname, relkind, nspname from pg_class join namespace on namespace.oid = relnamespace
)
select current_setting('server_version_num')::integer as server_version,
       exists (select from namespace) as schema_exists,
       array(
         select relname::text from relation
          where relname = any(%(relations)s::name[])
       ) as relations,
       array(
         select word from ts_stat(coalesce((
           select pg_catalog.format(
                    'select array_to_tsvector('
                    'array[id || '':'' || coalesce(to_jsonb(ledger)->>''breaking'', ''unknown'') || '':'' '
                    '|| date_part(''epoch'', clock_timestamp() - ts)::bigint::text]) '
                    'from %%I.migrations as ledger', nspname)
             from relation
            where relname = 'migrations'
              and
              \ir parts/is_plain_table.sql
         ), 'select null::tsvector where false'))
       ) as shared_ledger,
       array(
         select word from ts_stat(coalesce((
           select pg_catalog.format(
                    'select array_to_tsvector(array[id || '':'' || coalesce(to_jsonb(ledger)->>''name'', '''')]) '
                    'from %%I._private_gw_migrations as ledger', nspname)
             from relation
            where relname = '_private_gw_migrations'
              and
              \ir parts/is_plain_table.sql
         ), 'select null::tsvector where false'))
       ) as own_ledger,
       exists (
         select from pg_proc
           join namespace on namespace.oid = pronamespace
          where proname = 'add_jobs' and position(%(marker)s::text in prosrc) > 0
       ) as is_repaired,
       not exists (
         select from pg_proc
           join namespace on namespace.oid = pronamespace
          where proname in ('add_job', 'add_jobs', 'complete_jobs', 'permanently_fail_jobs', 'reschedule_jobs',
                            'remove_job', 'force_unlock_workers')
            and not exists (select from pg_catalog.unnest(proconfig) as setting where starts_with(setting, 'search_path='))
       ) as is_pinned,
       array(
         select proname::text from pg_proc
           join namespace on namespace.oid = pronamespace
          where prosecdef
            and not exists (
                  select from aclexplode(coalesce(proacl, acldefault('f'::"char", proowner))) as rights
                   where rights.grantee = 0::oid
                )
       ) as private_functions,
       not exists (
         select from pg_class
           join namespace on namespace.oid = relnamespace
          where relname in ('_private_gw_history', '_private_gw_history_default')
            and relreplident = 'd'::"char"
       ) as has_identities,
       current_user::text,
       array(
         select used.use
           \ir parts/hidden_rows.sql
       ) as hidden;
