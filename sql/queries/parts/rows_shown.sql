-- How many of the rows of :TABLE row security shows this role for :COMMAND ('r', 'w' or 'd'): none, some or all.
case
  when not row_security_active(:TABLE::oid) then 'all'
  else (
    select case
             when not coalesce(bool_or(policies.polpermissive), false) then 'none'
             when bool_or(policies.polpermissive and pg_get_expr(policies.polqual, policies.polrelid) = 'true')
              and bool_and(policies.polpermissive) then 'all'
             else 'some'
           end
      from pg_policy as policies
     where policies.polrelid = :TABLE
       and policies.polcmd::text in ('*', :COMMAND)
       and (0::oid = any(policies.polroles)
            or exists (
                 select from pg_catalog.unnest(policies.polroles) as granted (role) where pg_has_role(granted.role, 'usage')
               ))
  )
end
