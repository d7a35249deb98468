-- Whether gw's actions are recorded: a schema of another worker has no table for them.
select exists (
         select
           from pg_class as actions
           join pg_namespace as namespaces on namespaces.oid = actions.relnamespace
          where namespaces.nspname = %(schema)s::text
            and actions.relname = '_private_gw_actions'
       )
