-- `create or replace function` resets what an owner set on a function; give it back: `security definer`, `cost`, `rows`
-- and settings. A setting is written as PostgreSQL keeps it, so it takes the way through the transaction's own.
do $gw$
declare
  v_function record;
  v_setting text;
  v_name text;
  v_before text;
begin
  for v_function in
    select functions.oid::regprocedure as signature, kept.*, functions.proretset,
           array(select unnest(kept.settings) except select unnest(functions.proconfig)) as lost
      from json_to_recordset(current_setting('gw.functions')::json)
           as kept (name text, definer boolean, cost real, rows real, settings text[])
      join pg_proc as functions on functions.proname = kept.name
      join pg_namespace as namespaces on namespaces.oid = functions.pronamespace
     where namespaces.nspname = :'GRAPHILE_WORKER_SCHEMA'
       and (functions.prosecdef <> kept.definer
            or functions.procost <> kept.cost
            or functions.prorows <> kept.rows
            or not kept.settings <@ coalesce(functions.proconfig, '{}'))
  loop
    execute format(
      'alter function %s security %s cost %s%s',
      v_function.signature,
      case when v_function.definer then 'definer' else 'invoker' end,
      v_function.cost,
      case when v_function.proretset then ' rows ' || v_function.rows::text end
    );
    foreach v_setting in array v_function.lost loop
      v_name := split_part(v_setting, '=', 1);
      v_before := current_setting(v_name, true);
      perform set_config(v_name, substr(v_setting, length(v_name) + 2), true);
      execute format('alter function %s set %s from current', v_function.signature, quote_ident(v_name));
      perform set_config(v_name, v_before, true);
    end loop;
  end loop;
end;
$gw$;

-- What a step makes belongs to the queue's owner and not to the administrator who ran it: in a new schema the schema's
-- owner, else the owner of the shared ledger.
do $gw$
declare
  v_known oid[] := current_setting('gw.relations');
  v_owner oid;
  v_right text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
  v_object record;
begin
  select coalesce(ledger.relowner, namespaces.nspowner) into v_owner
    from pg_namespace as namespaces
    left join pg_class as ledger
      on ledger.relnamespace = namespaces.oid and ledger.relname = 'migrations' and ledger.oid = any(v_known)
   where namespaces.nspname = :'GRAPHILE_WORKER_SCHEMA';
  if v_owner = current_user::regrole or v_owner = to_regrole('pg_database_owner')
     or not pg_has_role(v_owner, v_right) then
    return;
  end if;

  for v_object in
    select case relations.relkind when 'v' then 'view' when 'c' then 'type' else 'table' end as kind,
           format('%I.%I', namespaces.nspname, relations.relname) as name
      from pg_class as relations
      join pg_namespace as namespaces on namespaces.oid = relations.relnamespace
     where namespaces.nspname = :'GRAPHILE_WORKER_SCHEMA'
       and relations.relkind in ('r', 'p', 'v', 'c')
       and relations.relowner = current_user::regrole
       and relations.oid <> all(v_known)
    union all
    select 'function', functions.oid::regprocedure::text
      from pg_proc as functions
      join pg_namespace as namespaces on namespaces.oid = functions.pronamespace
     where namespaces.nspname = :'GRAPHILE_WORKER_SCHEMA'
       and functions.proowner = current_user::regrole
       and not exists (
             select from json_to_recordset(current_setting('gw.functions')::json) as kept (name text)
              where kept.name = functions.proname
           )
  loop
    execute format('alter %s %s owner to %s', v_object.kind, v_object.name, v_owner::regrole);
  end loop;
end;
$gw$;

select set_config('search_path', current_setting('gw.search_path'), true);
