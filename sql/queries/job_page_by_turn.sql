-- The next matching jobs among at least `chunk_size` waiting jobs in the order in which they will run, and where the next
-- chunk begins.
-- The index that every schema has is ordered by priority, run_at and, among equals, the address of the row. A bulk insert
-- gives a million jobs the same run_at, and sorting those by id takes a second. So a page ends at a block of the table and
-- an id in it. Each priority is read separately, so that scheduled jobs are not read on the way to those that are due.
with recursive
\set KNOWN null::smallint
\set AMONG ''
\set PRIORITIES levels
\set FIRST 'and jobs.priority >= %(after_priority)s::smallint'
\ir parts/priorities.sql
scanned as materialized (
  select due.*, row_number() over () as turn
    from levels
   cross join lateral (
           select
             jobs.id,
             jobs.priority,
             jobs.run_at,
             jobs.ctid as row,
             (:SELECTION) is true as matches
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              \ir parts/is_of_priority.sql
              and (
                levels.priority > %(after_priority)s::smallint
                or jobs.run_at > %(after_run_at)s::timestamp at time zone 'UTC'
                or (jobs.ctid >= %(from_row)s::tid and (jobs.ctid >= %(next_block)s::tid or jobs.id > %(after_id)s::bigint))
              )
            order by jobs.run_at
            limit %(chunk_size)s + current_setting('block_size')::int / 28
         ) as due
   limit %(chunk_size)s + current_setting('block_size')::int / 28
),
\ir parts/page_by_block.sql
