-- The next matching jobs among at most `chunk_size` permanently failed jobs, the latest failure first, and where that
-- chunk ended. Every failure sets `run_at`, the last one too, so this is the order of failures.
-- This needs gw's index of failed jobs.
with scanned as materialized (
  select failed.*, row_number() over () as turn
    from (
           select
             jobs.id,
             jobs.run_at,
             (:SELECTION) is true as matches
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.locked_at is null
              and jobs.attempts >= jobs.max_attempts
              and (jobs.run_at, jobs.id) < (%(after_run_at)s::timestamp at time zone 'UTC', %(after_id)s::bigint)
            order by jobs.run_at desc, jobs.id desc
            limit %(chunk_size)s::bigint
         ) as failed
),
found as (
  select * from scanned where matches order by turn limit %(limit)s::bigint
)
select
  (select count(*) from scanned),
  array(select id from found order by turn),
  (select array[(run_at at time zone 'UTC')::text, id::text] from found order by turn desc limit 1),
  (select array[(run_at at time zone 'UTC')::text, id::text] from scanned order by turn desc limit 1)
