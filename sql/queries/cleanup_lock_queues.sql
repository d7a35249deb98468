-- Keep everybody from adding jobs to queues until the transaction ends: whoever adds a job looks its queue up first and
-- uses it later, and must not find it gone in between. Adding and claiming wait; reading goes on.
lock table :GRAPHILE_WORKER_SCHEMA._private_job_queues in share row exclusive mode
