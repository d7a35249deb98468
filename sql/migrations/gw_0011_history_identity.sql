-- In a database whose publication has all tables, PostgreSQL rejects every delete from a table that has neither a primary
-- key nor a replica identity. Rows of history have no key, and those of the default partition are deleted when a
-- partition is made for them or when they expire. Partitions made later get the identity from the function.

set local lock_timeout = '2s';

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

\ir parts/make_history_partition.sql
