-- The locked jobs, far fewer than the limit.
-- The order makes the planner use gw's index of locked jobs whatever the statistics say.
 from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
where jobs.locked_at is not null
order by jobs.locked_at
limit 100000
