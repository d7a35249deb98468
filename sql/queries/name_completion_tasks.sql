-- The first tasks that begin like this, for completion in a shell.
-- The order of text need not be that of its bytes, so where the walk may begin is left to the planner, and time is bound.
select known.identifier
  from :GRAPHILE_WORKER_SCHEMA._private_tasks as known
 where starts_with(known.identifier, %(prefix)s::text)
 order by known.identifier
 limit %(limit)s
