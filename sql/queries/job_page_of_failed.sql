-- The next matching jobs among at most `chunk_size` permanently failed jobs, the latest failure first, and where that
-- chunk
-- ended. Every failure sets `run_at`, the last one too, so this is the order of failures. This needs gw's index of
-- failed jobs.
with scanned as materialized (
  select
    jobs.id,
    jobs.run_at,
    (:SELECTION) is true as matches
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is null
     and jobs.attempts >= jobs.max_attempts
     and (jobs.run_at, jobs.id) < (%(after_run_at)s::timestamp at time zone 'UTC', %(after_id)s::bigint)
   order by jobs.run_at desc, jobs.id desc
   limit %(chunk_size)s
),
found as (
  select * from scanned where matches order by run_at desc, id desc limit %(limit)s
),
ends as (
  select * from scanned order by run_at, id limit 1
),
full_ends as (
  select * from found order by run_at, id limit 1
)
select
  (select count(*) from scanned),
  array(select id from found order by run_at desc, id desc),
  (select array[(run_at at time zone 'UTC')::text, id::text] from full_ends),
  (select array[(run_at at time zone 'UTC')::text, id::text] from ends)
