-- Keep everybody from adding jobs, and workers from starting, until the transaction ends: both look a task's id up first
-- and use it later, and must not find it gone in between. Claiming and reading go on.
lock table :GRAPHILE_WORKER_SCHEMA._private_tasks in share row exclusive mode
