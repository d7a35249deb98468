-- The next waiting jobs `:AMONG` all or those of one queue, in the order in which they will run.
-- Every schema has an index by priority and run_at. A bulk insert gives a million jobs the same run_at, and sorting those
-- takes a second, so equals come in the order of the index, which has no cursor. The number of jobs is therefore bounded.
-- Each priority is read separately, so that scheduled jobs are not read on the way to those that are due.
with recursive
\set KNOWN null::smallint
\set BELOW ''
\set AMONG ''
\set PRIORITIES levels
\ir parts/priorities.sql
next_jobs as materialized (
  select due.id, row_number() over () as turn
    from levels
   cross join lateral (
           select jobs.id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.priority = levels.priority
              :AMONG
              and jobs.run_at >= case when %(with_due)s::boolean then '-infinity' else now() end
              and jobs.run_at <= case when %(with_later)s::boolean then 'infinity' else now() end
            order by jobs.run_at
            limit %(skip)s::bigint + %(limit)s::bigint
         ) as due
   limit %(skip)s::bigint + %(limit)s::bigint
)
select next_jobs.id
  from next_jobs
 where next_jobs.turn > %(skip)s::bigint
 order by next_jobs.turn
