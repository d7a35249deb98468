-- The next matching jobs among at most `chunk_size` waiting jobs of one queue in the order in which they will run, and
-- where that chunk ended. This needs gw's index of queued jobs; like job_page_by_turn.sql it reads each priority
-- separately.
with recursive
\set KNOWN null::smallint
\set AMONG 'and jobs.job_queue_id = %(queue_id)s::int'
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
             (:SELECTION) is true as matches
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id = %(queue_id)s::int
              \ir parts/is_of_priority.sql
              and (
                levels.priority > %(after_priority)s::smallint
                or jobs.run_at > %(after_run_at)s::timestamp at time zone 'UTC'
                or jobs.id > %(after_id)s::bigint
              )
            order by jobs.run_at, jobs.id
            limit %(chunk_size)s
         ) as due
   limit %(chunk_size)s
),
\set PLACE 'priority::text, (run_at at time zone 'UTC')::text, id::text'
\ir parts/page_by_turn.sql
