-- How many jobs a selection means, and up to which id: an action ends there, whatever is added while it runs.
-- `:RUNNING` is true if only locked jobs can match. They are read first, in the order of gw's index of locked jobs:
-- otherwise the planner, where it has no statistics, reads the whole table.
\set RUNNING false
select count(*),
       coalesce(max(jobs.id), 0),
       count(*) filter (where jobs.locked_at >= now() - interval '4 hours'),
       count(*) filter (where jobs.locked_at is not null),
       count(*) filter (where jobs.locked_at is null and jobs.last_error is null and jobs.attempts < jobs.max_attempts)
  from (
    select jobs.*
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
\if :RUNNING
     where jobs.locked_at is not null
     order by jobs.locked_at
    offset 0
\endif
  ) as jobs
 where :SELECTION
