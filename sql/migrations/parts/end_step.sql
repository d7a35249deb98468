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

select set_config('search_path', current_setting('gw.search_path'), true),
       set_config('role', current_setting('gw.role'), true);
