--! breaking
-- The tables become private by name; constraints, indexes and sequences keep theirs.
-- The functions arrive in their final form. Those of revision 16 sent no `jobs:insert` notification, because a trigger
-- did until revision 18. Between the two, each add wakes the workers twice, which is harmless.

alter table :GRAPHILE_WORKER_SCHEMA.jobs rename to _private_jobs;
alter table :GRAPHILE_WORKER_SCHEMA.job_queues rename to _private_job_queues;
alter table :GRAPHILE_WORKER_SCHEMA.tasks rename to _private_tasks;
alter table :GRAPHILE_WORKER_SCHEMA.known_crontabs rename to _private_known_crontabs;

\ir parts/add_jobs.sql
\ir parts/remove_job.sql
\ir parts/operator_functions.sql
