-- What our role may be meant for: the kinds of `gw grant` that it or a role that it is a member of has, whether it acts as the
-- owner of the queue, and whether it may change jobs.
select array(
         select substr(policies.polname::text, 4)
           from pg_policy as policies
          where policies.polrelid = ledger.oid
            and policies.polname::text = any(%(policies)s::text[])
            and exists (
                  select
                    from pg_catalog.unnest(policies.polroles) as granted (role)
                   where pg_has_role(granted.role, 'usage')
                )
          order by 1
       ),
       coalesce(pg_has_role(ledger.relowner, 'usage'), false),
       coalesce(has_table_privilege(jobs.oid, 'insert, update, delete'), false)
  from pg_namespace as namespaces
  left join pg_class as jobs
    on jobs.relnamespace = namespaces.oid
   and jobs.relname = '_private_jobs'
  left join pg_class as ledger
    on ledger.relnamespace = namespaces.oid
   and ledger.relname = '_private_gw_migrations'
 where namespaces.nspname = %(schema)s::text
