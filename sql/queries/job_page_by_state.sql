-- A page of all jobs in the order in which an operator needs them: those that run, those that run next, those of the
-- later ones that have failed, those that failed permanently, and those scheduled for later or waiting.
-- At most `most` of each are listed, and the next `later` ones: whether such a job has failed is in the table alone, so
-- each of them costs a few blocks. Every stage reads an index, and none is read if those before it fill the page.
-- This needs gw's indexes of locked and of failed jobs. Each stage has a limit, so one plan serves all pages.
with recursive
\set KNOWN null::smallint
\set BELOW ''
\set AMONG ''
\set PRIORITIES levels
\ir parts/priorities.sql
running as materialized (
  select held.id, row_number() over (order by held.id) as turn
    from (
           select jobs.id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.locked_at is not null
            order by jobs.locked_at
            limit %(most)s::bigint
         ) as held
),
ready as materialized (
  select due.id, row_number() over () as turn
    from levels
   cross join lateral (
           select jobs.id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.priority = levels.priority
              and jobs.run_at >= levels.since
              and jobs.run_at <= now()
            order by jobs.run_at
            limit %(most)s::bigint
         ) as due
   where (select count(*) from running) < %(end)s::bigint
   limit %(most)s::bigint
),
later as materialized (
  select due.id, due.run_at
    from (select levels.* from levels limit %(levels)s::bigint) as levels
   cross join lateral (
           select jobs.id, jobs.run_at
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.priority = levels.priority
              and jobs.run_at > now()
            order by jobs.run_at
            limit %(later)s::bigint
         ) as due
   where (select count(*) from running) + (select count(*) from ready) < %(end)s::bigint
   order by due.run_at, due.id
   limit %(later)s::bigint
),
upcoming as materialized (
  select later.id,
         row_number() over (order by later.run_at, later.id) as turn,
         later.run_at < 'infinity' and jobs.attempts > 0 and jobs.last_error is not null as has_failed
    from later
    join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs on jobs.id = later.id
),
failed as materialized (
  select ended.id, row_number() over () as turn
    from (
           select jobs.id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.locked_at is null
              and jobs.attempts >= jobs.max_attempts
            order by jobs.run_at desc, jobs.id desc
            limit %(most)s::bigint
         ) as ended
   where (select count(*) from running) + (select count(*) from ready) < %(end)s::bigint
)
select stages.id
  from (
         select 1 as stage, running.turn, running.id from running
         union all
         select 2, ready.turn, ready.id from ready
         union all
         select 3, upcoming.turn, upcoming.id from upcoming where upcoming.has_failed
         union all
         select 4, failed.turn, failed.id from failed
         union all
         select 5, upcoming.turn, upcoming.id from upcoming where not upcoming.has_failed
       ) as stages
 order by stages.stage, stages.turn
offset %(skip)s::bigint
 limit %(limit)s::bigint
