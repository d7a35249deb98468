-- The next matching jobs among at least `chunk_size` waiting jobs of one priority and run_at, up to a block of the table,
-- and where the next chunk begins. After a bulk insert these can be millions. The index leads only to the first of them;
-- an address leads to its block. There is no order by: the table and the index both return equals in order of their
-- blocks, and a sort would read all of them first. Before PostgreSQL 14 the planner cannot read a range of blocks, and
-- scans the index.
with scanned as materialized (
  select near.*, row_number() over () as turn
    from (
           select
             jobs.id,
             jobs.priority,
             jobs.run_at,
             jobs.ctid as row,
             (:SELECTION) is true as matches
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.ctid >= %(from_row)s::tid
              and jobs.ctid < %(before_row)s::tid
              and (jobs.ctid >= %(next_block)s::tid or jobs.id > %(after_id)s::bigint)
              and jobs.is_available = true
              and jobs.priority = %(after_priority)s::smallint
              and jobs.run_at = %(after_run_at)s::timestamp at time zone 'UTC'
            limit %(chunk_size)s + current_setting('block_size')::int / 28
         ) as near
),
\ir parts/page_by_block.sql
