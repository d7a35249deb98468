-- Add one job, or return the job that has its key, which can have another task and queue.
-- Names that the function has just added are not in the statement's snapshot, and then they are the caller's.
-- Other adds do not read them: a program's first add would also have to ask whether rows of their tables are hidden.
\set TASK 'coalesce(stored.task, %(identifier)s::text)'
\set QUEUE 'case when job.job_queue_id is not null then coalesce(stored.queue_name, %(queue_name)s::text) end'
select
  \ir parts/added_job.sql
\ir parts/from_add_job.sql
cross join lateral (
  select (
           select tasks.identifier
             from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
            where tasks.id = job.task_id
         ) as task,
         (
           select queues.queue_name
             from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
            where queues.id = job.job_queue_id
         ) as queue_name
) as stored
