-- Return whether a job waits, also one for later, of any task and queue. An idle worker asks this at each poll while none
-- does: it takes half of the time of is_any_due.sql.
select exists (select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.is_available = true)
