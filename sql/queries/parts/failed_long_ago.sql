-- The failed job has its last failure behind it for this long. A worker's failure, in any language, moves `run_at` to the
-- time of the next attempt, also when there is none. A failure by `permanently_fail_jobs` moves `updated_at`. So the job
-- failed at the later one of both, or before: up to the delay of an attempt. `run_at` bounds the read of the index.
and jobs.run_at :RUN
and jobs.updated_at <= now() - make_interval(secs => %(older_seconds)s::double precision)
\if :HOLDS
-- A failed job holds the jobs that wait for it until someone decides; a clock does not start them.
and not exists (select from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges where edges.job_id = jobs.id)
\endif
