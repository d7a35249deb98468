-- The next matching jobs among at most `chunk_size` waiting jobs in the order in which they will run, and where that
-- chunk
-- ended. The index that every schema has is ordered by priority, run_at and, among equals, the address of the row. A
-- bulk insert gives a million jobs the same run_at, and sorting those by id takes a second. So a page ends at an
-- address. Each priority is read separately, so that scheduled jobs are not read on the way to those that are due.
with recursive levels (priority) as (
  (
    select jobs.priority
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
       and jobs.priority >= %(after_priority)s::smallint
     order by jobs.priority
     limit 1
  )
  union all
  select (
           select jobs.priority
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.priority > levels.priority
            order by jobs.priority
            limit 1
         )
    from levels
   where levels.priority is not null
),
scanned as materialized (
  select due.*, row_number() over () as turn
    from levels
   cross join lateral (
           select
             jobs.id,
             jobs.priority,
             jobs.run_at,
             jobs.ctid as place,
             (:SELECTION) is true as matches
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              \ir parts/is_of_priority.sql
              and (
                levels.priority > %(after_priority)s::smallint
                or jobs.run_at > %(after_run_at)s::timestamp at time zone 'UTC'
                or jobs.ctid > %(after_place)s::tid
              )
            order by jobs.run_at
            limit %(chunk_size)s
         ) as due
   limit %(chunk_size)s
),
\ir parts/page_by_turn.sql
