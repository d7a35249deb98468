-- Our role with each privilege that it lacks, `PRIVILEGE OBJECT`, of those that roles of some kinds need.
select current_user::text, needed.privilege || ' ' || needed.object
  from (
    select split_part(needed.pair, ' ', 1) as privilege, split_part(needed.pair, ' ', 2) as object
      from pg_catalog.unnest(%(rights)s::text[]) as needed (pair)
  ) as needed
  join pg_namespace as namespaces on namespaces.nspname = %(schema)s::text
  left join pg_class as tables
    on tables.relnamespace = namespaces.oid
   and tables.relname::text = needed.object
   and needed.privilege <> 'execute'
  left join pg_proc as functions
    on functions.pronamespace = namespaces.oid
   and functions.proname::text = needed.object
   and needed.privilege = 'execute'
 where case
         when functions.oid is not null
           then not has_function_privilege(functions.oid, 'execute')
         when tables.oid is not null
           then not has_schema_privilege(namespaces.oid, 'usage') or not has_table_privilege(tables.oid, needed.privilege)
         else false
       end
 order by needed.object, needed.privilege
