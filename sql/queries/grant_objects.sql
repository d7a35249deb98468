-- The objects of the queue with the rights that roles have on each: a row for each right, or one without a role.
-- Only a role's own rights count, and not those of PUBLIC or of roles that it is a member of: they may be revoked there.
select objects.kind, objects.name, objects.belongs_to, objects.has_row_security,
       roles.rolname::text, lower(rights.privilege_type)
  from (
    select 1 as place,
           'schema' as kind,
           nspname::text as name,
           null::text as belongs_to,
           false as has_row_security,
           nspacl as acl
      from pg_namespace
     where nspname = %(schema)s::text
     union all
    select 2, 'table', relations.relname::text, null, relations.relrowsecurity, relations.relacl
      from pg_class as relations
      join pg_namespace as namespaces on namespaces.oid = relations.relnamespace
     where namespaces.nspname = %(schema)s::text
       and relations.relkind in ('r', 'p', 'v')
     union all
    select 3, 'sequence', sequences.relname::text, tables.relname::text, false, sequences.relacl
      from pg_class as sequences
      join pg_namespace as namespaces on namespaces.oid = sequences.relnamespace
      join pg_depend as dependencies on dependencies.objid = sequences.oid and dependencies.deptype in ('a', 'i')
      join pg_class as tables on tables.oid = dependencies.refobjid
     where namespaces.nspname = %(schema)s::text
       and sequences.relkind = 'S'
     union all
    select 4,
           'function',
           functions.proname::text,
           pg_get_function_identity_arguments(functions.oid),
           false,
           functions.proacl
      from pg_proc as functions
      join pg_namespace as namespaces on namespaces.oid = functions.pronamespace
     where namespaces.nspname = %(schema)s::text
       and functions.prokind = 'f'
  ) as objects
  left join lateral aclexplode(objects.acl) as rights on rights.grantee <> 0::oid
  left join pg_roles as roles on roles.oid = rights.grantee
 order by objects.place, objects.name
