-- The jobs that workers hold, far fewer than the limit.
-- Our index of locked jobs is chosen for its order, whatever the statistics say.
 from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
where jobs.locked_at is not null
order by jobs.locked_at
limit 100000
