-- Whether the schema has a table of gw's: a schema of another worker has none.
select exists (
         select
           from pg_class as tables
           join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
          where namespaces.nspname = %(schema)s::text
            and tables.relname = %(table)s::name
       )
