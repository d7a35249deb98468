-- Within a step names mean PostgreSQL's own, whatever the session's search_path is.
-- Note what the schema has already: end_step.sql compares.
select pg_catalog.set_config('gw.search_path', pg_catalog.current_setting('search_path'), true),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
select set_config('gw.relations', array(
         select relations.oid
           from pg_class as relations
           join pg_namespace as namespaces on namespaces.oid = relations.relnamespace
          where namespaces.nspname = :'GRAPHILE_WORKER_SCHEMA'
       )::text, true),
       set_config('gw.functions', coalesce((
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
