-- Within a step names mean PostgreSQL's own, whatever the session's search_path is.
-- Note what an owner set on functions: end_step.sql restores it.
select pg_catalog.set_config('gw.search_path', pg_catalog.current_setting('search_path'), true),
       pg_catalog.set_config('gw.role', pg_catalog.current_setting('role'), true),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
select set_config('gw.functions', coalesce((
         select json_agg(json_build_object(
                  'name', functions.proname,
                  'definer', functions.prosecdef,
                  'cost', functions.procost,
                  'rows', functions.prorows,
                  'settings', coalesce(functions.proconfig, '{}')
                ))
           from pg_proc as functions
           join pg_namespace as namespaces on namespaces.oid = functions.pronamespace
          where namespaces.nspname = :'GRAPHILE_WORKER_SCHEMA'
       ), '[]')::text, true);

\ir parts/act_as_owner.sql
