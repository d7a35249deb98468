-- The policies that `gw grant` made: one for each table and kind of role, with the names of the roles.
select tables.relname::text,
       substr(policies.polname::text, 4),
       policies.polcmd::text,
       array(select rolname::text from pg_roles where pg_roles.oid = any(policies.polroles) order by 1)
  from pg_policy as policies
  join pg_class as tables on tables.oid = policies.polrelid
  join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
 where namespaces.nspname = %(schema)s::text
   and policies.polname::text = any(%(policies)s::text[])
 order by 1, 2
