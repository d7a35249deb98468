-- Repair functions of the queue that Graphile Worker, or another program, installed.
-- The add under a key: if it races with a worker or another add, no job is lost and no empty row is returned. What it
-- retires, and what `remove_job` retires, no other program brings back.

\ir parts/add_jobs.sql
\ir parts/remove_job.sql

-- Give every function its own search_path. Without one, names in a function's body are looked up in the caller's
-- search_path: a role that may create objects in a schema on that path can have them run with the caller's rights.
-- Those that Graphile Worker (Node.js) installed keep their bodies. An owner's own search_path stays as it is.
do $gw$
declare
  v_function regprocedure;
begin
  for v_function in
    select functions.oid
      from pg_proc as functions
      join pg_namespace as namespaces on namespaces.oid = functions.pronamespace
     where namespaces.nspname = :'GRAPHILE_WORKER_SCHEMA'
       and functions.proname = any(
             '{add_job,add_jobs,complete_jobs,permanently_fail_jobs,reschedule_jobs,remove_job,force_unlock_workers}'
           )
       and not exists (
             select from unnest(functions.proconfig) as setting where starts_with(setting, 'search_path=')
           )
  loop
    execute format('alter function %s set search_path = pg_catalog, pg_temp', v_function);
  end loop;
end;
$gw$;
