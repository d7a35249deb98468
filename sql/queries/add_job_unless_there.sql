-- Add one job, or return the job that has its key, which can have another task and queue.
-- Names that the function has just added are not in the statement's snapshot, and then they are the caller's.
-- Other adds do not read them: a program's first add would also have to ask whether rows of their tables are hidden.
\set TASK 'coalesce(stored.task, %(identifier)s::text)'
\set QUEUE 'case when job.job_queue_id is not null then coalesce(stored.queue_name, %(queue_name)s::text) end'
\set FLAGS '%(flags)s::text[]'
select
  \ir parts/added_job.sql
\ir parts/from_add_job.sql
\ir parts/stored_names.sql
