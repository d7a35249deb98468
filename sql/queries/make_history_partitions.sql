-- Make the partitions in which the rows of today and of the next two days expire, one for each period and day.
-- Returns how many could not be made, because too many rows wait in the default partition.
select count(*) filter (where not :GRAPHILE_WORKER_SCHEMA._private_gw_make_history_partition(days.day))
  from (
    select distinct ((now() + make_interval(secs => period)) at time zone 'UTC')::date + ahead as day
      from unnest(%(period_seconds)s::double precision[]) as period
     cross join generate_series(0, 2) as ahead
     order by 1
  ) as days
