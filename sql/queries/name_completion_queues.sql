-- The first queues that begin like this, for completion in a shell.
-- The order of text need not be that of its bytes, so where the walk may begin is left to the planner, and time is bound.
select known.queue_name
  from :GRAPHILE_WORKER_SCHEMA._private_job_queues as known
 where starts_with(known.queue_name, %(prefix)s::text)
 order by known.queue_name
 limit %(limit)s
