-- The uses of tables for which row security shows this role no row: `r TABLE` reads, `w TABLE` updates, `d TABLE` deletes.
-- Without the privilege, PostgreSQL reports an error.
from pg_catalog.unnest(%(uses)s::text[]) as used (use)
join pg_class as tables on tables.relname = substr(used.use, 3)::name
join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
where namespaces.nspname = %(schema)s::text
  and row_security_active(tables.oid)
  and has_table_privilege(
        tables.oid, case substr(used.use, 1, 1) when 'r' then 'select' when 'w' then 'update' else 'delete' end
      )
  and not exists (
        select
          from pg_policy as policies
         where policies.polrelid = tables.oid
           and policies.polpermissive
           and policies.polcmd::text in ('*', substr(used.use, 1, 1))
           and (0::oid = any(policies.polroles)
                or exists (
                     select
                       from pg_catalog.unnest(policies.polroles) as granted (role)
                      where pg_has_role(granted.role, 'usage')
                   ))
      )
