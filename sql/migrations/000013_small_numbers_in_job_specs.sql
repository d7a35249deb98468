--! breaking
-- A job specification holds priority and max_attempts as smallint, as the jobs table does.
-- Revision 13 also narrowed the arguments of add_job and reschedule_jobs; 14 widened them again, and since both run
-- here one after the other, the arguments are left wide.

alter type :GRAPHILE_WORKER_SCHEMA.job_spec
  alter attribute max_attempts set data type smallint,
  alter attribute priority set data type smallint;
