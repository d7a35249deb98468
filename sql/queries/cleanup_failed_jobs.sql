-- Delete the next permanently failed jobs, the earliest failure first; returns where the batch ended, and its size.
-- That is the order of gw's index of failed jobs. Without the index `:PLACE` is the id, or each batch would sort the
-- table. Rows that another session locks, for example to retry the job, are skipped.
-- With `:RECORDS` the jobs are added to history. With `:OLDER`, only jobs that failed long ago are deleted, and none that
-- `:HOLDS` others.
\set RECORDS false
\set KEPT null::interval
\set OLDER false
\set HOLDS true
\set RUN '<= now() - make_interval(secs => %(older_seconds)s::double precision)'
\set PLACE 'jobs.run_at, jobs.id'
\set AFTER '%(after_run_at)s::timestamp at time zone 'UTC', %(after)s::bigint'
with ended as materialized (
  select jobs.id, jobs.run_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is null
     and jobs.attempts >= jobs.max_attempts
     and (:PLACE) > (:AFTER)
\if :OLDER
     \ir parts/failed_long_ago.sql
\endif
   order by :PLACE
   limit %(limit)s::bigint
     for update skip locked
),
deleted as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   using ended
   where jobs.id = ended.id
  returning jobs.*
),
\if :RECORDS
removed as (
  select deleted.*, tasks.identifier as task, queues.queue_name
    from deleted
    join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = deleted.task_id
    left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = deleted.job_queue_id
),
recorded as (
  \ir parts/recorded_removals.sql
)
,
\endif
last as (
  select numbered.*
    from (select ended.*, row_number() over () as turn from ended) as numbered
   order by numbered.turn desc
   limit 1
)
select
  (select id from last),
  (select (run_at at time zone 'UTC')::text from last),
  (select count(*) from deleted)
