-- Our role, and the statement with which it takes over a ledger: one that an administrator left behind in our schema.
select current_user::text,
       (
         select pg_catalog.format('alter table %%I.%%I owner to %%I'::text,
                                  namespaces.nspname::text, tables.relname::text, current_user::text)
           from pg_namespace as namespaces
           join pg_class as tables on tables.relnamespace = namespaces.oid
          where namespaces.nspname = %(schema)s::text
            and namespaces.nspowner = (select oid from pg_roles where rolname = current_user)
            and tables.relname in ('migrations', '_private_gw_migrations')
            and not has_table_privilege(tables.oid, 'select')
          order by tables.relname
          limit 1
       )
