-- Act as the owner of the queue: what the step makes belongs to that role, and so do the rights with which it runs. A role
-- that may create objects in the schema of another installs a queue of its own there.
-- Code that runs in the step could take the session's own role back. So when that is another role, the tables to which the
-- step writes, `:TABLES`, must run no code of others: no trigger, rule, default, check or type of a column.
do $gw$
declare
  v_schema text := :'GRAPHILE_WORKER_SCHEMA';
  v_role regrole := current_user::regrole;
  v_right text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
  v_owner regrole;
  v_has_ledger boolean;
  v_table regclass;
  v_code record;
begin
  select coalesce(ledger.relowner, namespaces.nspowner), ledger.oid is not null into v_owner, v_has_ledger
    from pg_namespace as namespaces
    left join pg_class as ledger on ledger.relnamespace = namespaces.oid and ledger.relname = 'migrations'
   where namespaces.nspname = v_schema;
  if v_owner is null or v_owner = v_role then
    return;
  end if;
  if pg_has_role(v_owner, v_right) and v_owner is distinct from to_regrole('pg_database_owner') then
    perform set_config('role', (select rolname from pg_roles where oid = v_owner), true);
  elsif v_has_ledger then
    raise exception using
      errcode = 'GWOWN',
      message = format('schema %1$L belongs to role %2$s, and role %3$s cannot act as it; run gw migrate as %2$s',
                       v_schema, v_owner, v_role);
  end if;

  -- The lock keeps the ledgers as they are found.
  for v_table in
    select tables.oid
      from pg_class as tables
      join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
     where namespaces.nspname = v_schema
       and tables.relname = any('{migrations,_private_gw_migrations}')
       and tables.relkind = 'r'
     order by tables.relname
  loop
    execute format('lock table only %s in share row exclusive mode', v_table);
  end loop;
  with recursive parts (classid, objid) as (
    select 'pg_class'::regclass::oid, tables.oid
      from pg_class as tables
      join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
     where namespaces.nspname = v_schema
       and tables.relname = any('{:TABLES}')
    union
    select next.classid, next.objid
      from parts
     cross join lateral (
       -- What belongs to the table, and tables that inherit from it.
       select classid, objid
         from pg_depend
        where refclassid = parts.classid
          and refobjid = parts.objid
          and classid <> 'pg_type'::regclass
          and (deptype in ('a', 'i') or classid = refclassid)
       union all
       -- What those use.
       select refclassid, refobjid
         from pg_depend
        where classid = parts.classid
          and objid = parts.objid
     ) as next
  )
  select pg_describe_object(parts.classid, parts.objid, 0) as name, owners.oid::regrole as owner into v_code
    from parts
    left join pg_proc as functions on parts.classid = 'pg_proc'::regclass and functions.oid = parts.objid
    left join pg_type as types on parts.classid = 'pg_type'::regclass and types.oid = parts.objid
    join pg_roles as owners on owners.oid = coalesce(functions.proowner, types.typowner)
   where owners.oid <> v_role
     and not owners.rolsuper
   limit 1;
  if found then
    raise exception using
      errcode = 'GWOWN',
      message = format('changing schema %1$L could run %2$s of role %3$s with the rights of role %4$s; run gw migrate as %5$s',
                       v_schema, v_code.name, v_code.owner, v_role, v_owner);
  end if;
end;
$gw$;
