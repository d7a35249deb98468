-- Make the partition for rows that expire on this day (UTC) and move those that wait for it. Returns whether it exists.
-- A table with its name that is none, because an operator has detached it, stays: then the rows of the day wait.
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
  if to_regclass(format('%I.%I', v_schema, v_name)) is not null then
    return false;
  end if;
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
  execute format('alter table %I.%I replica identity full', v_schema, v_name);
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
