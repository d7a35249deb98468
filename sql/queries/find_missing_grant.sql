-- The statement that gives our role what it lacks to read the ledgers: a table, or the schema first of all.
-- A table that an administrator left behind, and not the schema's owner, goes to that owner when we are it.
select case
         when not has_schema_privilege(namespaces.oid, 'usage')
           then pg_catalog.format('grant usage on schema %%I to %%I'::text, namespaces.nspname::text, current_user::text)
         else (
           select case
                    when namespaces.nspowner = (select oid from pg_roles where rolname = current_user)
                      then pg_catalog.format('alter table %%I.%%I owner to %%I'::text,
                                             namespaces.nspname::text, tables.relname::text, current_user::text)
                    else pg_catalog.format('grant select, insert, update, delete on %%I.%%I to %%I'::text,
                                           namespaces.nspname::text, tables.relname::text, current_user::text)
                  end
             from pg_class as tables
            where tables.relnamespace = namespaces.oid
              and tables.relname in ('migrations', '_private_gw_migrations')
              and not has_table_privilege(tables.oid, 'select')
            order by tables.relname
            limit 1
         )
       end
  from pg_namespace as namespaces
 where namespaces.nspname = %(schema)s::text
