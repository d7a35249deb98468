-- Make the partitions in which the rows of today and of the next two days expire, one for each period and day.
-- The trigger that records jobs ended by others has a period of its own, as its argument.
-- Returns how many could not be made, because too many rows wait in the default partition.
with periods as (
  select pg_catalog.unnest(%(period_seconds)s::double precision[]) as seconds
  union
  select encode(substring(triggers.tgargs for length(triggers.tgargs) - 1), 'escape'::text)::double precision
    from pg_trigger as triggers
    join pg_class as tables on tables.oid = triggers.tgrelid
    join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
   where namespaces.nspname = %(schema)s::text
     and tables.relname = '_private_jobs'
     and triggers.tgname = '_private_gw_record_others'
)
select count(*) filter (where not :GRAPHILE_WORKER_SCHEMA._private_gw_make_history_partition(days.day))
  from (
    select distinct ((now() + make_interval(secs => periods.seconds)) at time zone 'UTC'::text)::date + ahead as day
      from periods
     cross join generate_series(0, 2) as ahead
     order by 1
  ) as days
