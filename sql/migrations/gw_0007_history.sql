-- History: what became of jobs, one row for each ended attempt. A row is written by the statement that settles the
-- attempt. `final` marks the row of a job that has left the queue.
-- The partitions are days of `expires_at`, so that each task can have a period of its own and expiry never deletes rows
-- one by one. Rows whose day has no partition yet go to the default partition.

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_history (
  job_id bigint not null,
  attempt integer not null,
  max_attempts integer not null,
  task text not null,
  queue_name text,
  key text,
  state text not null,
  final boolean not null,
  result json,
  error text,
  error_type text,
  traceback text,
  worker_id text,
  payload json,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz not null,
  expires_at timestamptz not null
) partition by range (expires_at);
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_history enable row level security;

create index if not exists gw_history_job_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_history (job_id);
create index if not exists gw_history_task_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_history (task, finished_at);
create index if not exists gw_history_finished_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_history (finished_at);
-- Few rows are not of completed jobs, and operators search for those.
create index if not exists gw_history_failed_index
  on :GRAPHILE_WORKER_SCHEMA._private_gw_history (finished_at)
  where state <> 'completed';

create table if not exists :GRAPHILE_WORKER_SCHEMA._private_gw_history_default
  partition of :GRAPHILE_WORKER_SCHEMA._private_gw_history default;
alter table :GRAPHILE_WORKER_SCHEMA._private_gw_history_default enable row level security;

-- Make the partition for rows that expire on this day (UTC) and move those that wait for it. Returns whether it exists.
-- Workers need not own the queue, so the function runs as its owner. A role that may not insert rows may not call it.
-- Attaching alone would lock only the default partition. A statement that was planned with the old list of partitions
-- would wait for it, and then scan or write only that one: it would miss the rows that move, or fail with an error about
-- the constraint of the default partition. So the function locks the table, which all statements lock before they read
-- the list. The short timeout limits how long other sessions queue behind it.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_make_history_partition(day date)
returns boolean
language plpgsql strict security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
set timezone = 'UTC'
as $gw$
declare
  v_schema text := :'GRAPHILE_WORKER_SCHEMA';
  v_history regclass := format('%I._private_gw_history', v_schema);
  v_name text := '_private_gw_history_' || to_char(day, 'YYYYMMDD');
  v_from timestamptz := day;
  v_until timestamptz := day + 1;
begin
  if not has_table_privilege(session_user, v_history, 'insert') then
    raise insufficient_privilege using message = 'permission denied to change the partitions of the history';
  end if;
  if day not between current_date and current_date + 36600 then
    raise invalid_parameter_value using message = 'history partitions are made for the next hundred years only';
  end if;
  -- First without the lock, which is seldom needed, and then with it: another worker may have made the partition.
  for needs_lock in 0..1 loop
    if needs_lock = 1 then
      lock table only :GRAPHILE_WORKER_SCHEMA._private_gw_history in access exclusive mode;
    end if;
    if exists (
         select
           from pg_inherits
           join pg_class as children on children.oid = pg_inherits.inhrelid
          where pg_inherits.inhparent = v_history
            and children.relname = v_name
       ) then
      return true;
    end if;
  end loop;
  -- Moving takes time under that lock. A day with many rows in the default partition stays there until it expires.
  if (
       select count(*)
         from (
           select
             from :GRAPHILE_WORKER_SCHEMA._private_gw_history_default as waiting
            where waiting.expires_at >= v_from
              and waiting.expires_at < v_until
            limit 5001
         ) as waiting
     ) > 5000 then
    return false;
  end if;
  execute format('create table %I.%I (like %s including all)', v_schema, v_name, v_history);
  execute format('alter table %I.%I enable row level security', v_schema, v_name);
  execute format(
    'with moved as (
       delete from %I._private_gw_history_default where expires_at >= $1 and expires_at < $2 returning *
     )
     insert into %I.%I select * from moved',
    v_schema, v_schema, v_name
  ) using v_from, v_until;
  execute format(
    'alter table %s attach partition %I.%I for values from (%L) to (%L)',
    v_history, v_schema, v_name, v_from, v_until
  );
  return true;
end;
$gw$;

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
  if not has_table_privilege(session_user, v_history, 'insert') then
    raise insufficient_privilege using message = 'permission denied to change the partitions of the history';
  end if;
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
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_record_others()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $gw$
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
  return null;
end;
$gw$;
