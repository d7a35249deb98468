-- Whether a role of this name exists, who owns the queue, whether the role has the owner's rights, and whether we have.
select roles.rolname is not null,
       owners.rolname::text,
       coalesce(roles.rolsuper or pg_has_role(roles.oid, owners.oid, 'usage'), false),
       pg_has_role(owners.oid, 'usage')
  from pg_class as tables
  join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
  join pg_roles as owners on owners.oid = tables.relowner
  left join pg_roles as roles on roles.rolname = %(role)s::text
 where namespaces.nspname = %(schema)s::text
   and tables.relname = '_private_gw_migrations'
