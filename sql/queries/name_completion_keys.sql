-- The first keys that begin like this, for completion in a shell.
-- The order of text need not be that of its bytes, so where the walk may begin is left to the planner, and time is bound.
select known.key
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as known
 where starts_with(known.key, %(prefix)s::text)
 order by known.key
 limit %(limit)s
