-- The functions of history that run with their owner's rights: workers need not own the queue to make and drop partitions,
-- and a program that completes a job need not see the history. Unless revoked, every role could execute them, so each
-- function is revoked from PUBLIC in the transaction that creates it, and each has a search_path of its own.

\ir parts/make_history_partition.sql

-- Drop the oldest partition whose day is over, or delete expired rows of the default partition, at most 10,000.
-- Returns the name of the table, or null when nothing is expired.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_expire_history()
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
set timezone = 'UTC'
as $gw$
declare
  v_schema text := :'GRAPHILE_WORKER_SCHEMA';
  v_history regclass := format('%I._private_gw_history', v_schema);
  v_name text;
begin
  select children.relname into v_name
    from pg_inherits
    join pg_class as children on children.oid = pg_inherits.inhrelid
   where pg_inherits.inhparent = v_history
     and children.relname ~ '^_private_gw_history_[0-9]{8}$'
     and to_date(right(children.relname, 8), 'YYYYMMDD') < current_date
   order by children.relname
   limit 1;
  if found then
    execute format('drop table %I.%I', v_schema, v_name);
    return v_name;
  end if;
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_history_default as expired
   where expired.ctid = any(array(
           select ctid from :GRAPHILE_WORKER_SCHEMA._private_gw_history_default where expires_at < now() limit 10000
         ));
  return case when found then '_private_gw_history_default' end;
end;
$gw$;

-- Record jobs that others end: a trigger on the jobs table calls this, and only an owner who wants it creates that trigger
-- (`gw record-others`). What gw's workers settle is not recorded here. Of a job that a worker held nothing is known but
-- that it completed; one without a lock was removed. The argument of the trigger is the period in seconds.
-- A job without its record is better than a completion that fails, because that job runs again. History rejects rows, for
-- example, while an operator has detached its default partition. The block costs one subtransaction for each statement.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_record_others()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $gw$
declare
  v_jobs regclass := format('%I._private_jobs', :'GRAPHILE_WORKER_SCHEMA');
begin
  -- The types of another table's columns could bring casts of their own, and those would run as the owner.
  if tg_relid <> v_jobs then
    raise insufficient_privilege using message = format('only a trigger on %s may record its jobs', v_jobs);
  end if;
  begin
    insert into :GRAPHILE_WORKER_SCHEMA._private_gw_history (
      job_id, attempt, max_attempts, task, queue_name, key, state, final, error, worker_id,
      created_at, started_at, finished_at, expires_at
    )
    select ended.id,
           ended.attempts,
           ended.max_attempts,
           tasks.identifier,
           queues.queue_name,
           ended.key,
           case when ended.locked_by is null then 'removed' else 'completed' end,
           true,
           case when ended.locked_by is null then ended.last_error end,
           ended.locked_by,
           ended.created_at,
           ended.locked_at,
           now(),
           now() + make_interval(secs => tg_argv[0]::double precision)
      from ended
      join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = ended.task_id
      left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = ended.job_queue_id
     where ended.locked_by is null
        or ended.locked_by !~ '^gw-.+-[0-9]+-[0-9a-f]{10}$';
  exception when others then
    raise warning 'jobs that ended are not recorded in history: %', sqlerrm;
  end;
  return null;
end;
$gw$;

revoke all on function
  :GRAPHILE_WORKER_SCHEMA._private_gw_make_history_partition(date),
  :GRAPHILE_WORKER_SCHEMA._private_gw_expire_history(),
  :GRAPHILE_WORKER_SCHEMA._private_gw_record_others()
from public;

-- Workers are the roles that may write rows of history. The trigger's function needs no grant: PostgreSQL asks for the right
-- when the trigger is created, which only the owner does.
do $gw$
declare
  v_schema text := :'GRAPHILE_WORKER_SCHEMA';
  v_role regrole;
begin
  for v_role in
    select distinct rights.grantee
      from pg_class as history
     cross join aclexplode(history.relacl) as rights
     where history.oid = format('%I._private_gw_history', v_schema)::regclass
       and rights.privilege_type = 'INSERT'
       and rights.grantee <> 0
  loop
    execute format(
      'grant execute on function %1$I._private_gw_make_history_partition(date), %1$I._private_gw_expire_history() to %2$s',
      v_schema, v_role
    );
  end loop;
end;
$gw$;

-- In a database whose publication has all tables, PostgreSQL rejects every delete from a table that has neither a primary
-- key nor a replica identity. Rows of history have no key, and those of the default partition are deleted when a
-- partition is made for them or when they expire. Partitions made later get the identity from the function.

do $gw$
declare
  v_table regclass;
begin
  for v_table in
    select tables.oid
      from pg_class as tables
      join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
     where namespaces.nspname = :'GRAPHILE_WORKER_SCHEMA'
       and starts_with(tables.relname, '_private_gw_history')
       and tables.relkind in ('r', 'p')
       and tables.relreplident = 'd'
     order by tables.relname
  loop
    execute format('alter table %s replica identity full', v_table);
  end loop;
end;
$gw$;
