-- The next matching jobs among at most `chunk_size` waiting jobs of one priority and run_at, up to a page of the table,
-- in
-- the order of their addresses, and where that chunk ended. After a bulk insert these can be millions. The index leads
-- only to the first of them; an address leads to its page. There is no order by: the table and the index both return
-- equals in order of their addresses, and a sort would read all of them first. Before PostgreSQL 14 the planner cannot
-- read a range of pages, and scans the index.
with scanned as materialized (
  select near.*, row_number() over () as turn
    from (
           select
             jobs.id,
             jobs.priority,
             jobs.run_at,
             jobs.ctid as place,
             (:SELECTION) is true as matches
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.ctid > %(after_place)s::tid
              and jobs.ctid < %(before_place)s::tid
              and jobs.is_available = true
              and jobs.priority = %(after_priority)s::smallint
              and jobs.run_at = %(after_run_at)s::timestamp at time zone 'UTC'
            limit %(chunk_size)s
         ) as near
),
\ir parts/page_by_turn.sql
