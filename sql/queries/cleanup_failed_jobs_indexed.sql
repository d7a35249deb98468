-- Delete the next permanently failed jobs, the earliest failure first; returns where the batch ended, and its size.
-- This needs gw's index of failed jobs; without it, each batch would sort the table. Rows that another session locks,
-- for example to retry the job, are skipped.
with ended as materialized (
  select jobs.id, jobs.run_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is null
     and jobs.attempts >= jobs.max_attempts
     and (jobs.run_at, jobs.id) > (%(after_run_at)s::timestamp at time zone 'UTC', %(after)s::bigint)
   order by jobs.run_at, jobs.id
   limit %(limit)s
     for update skip locked
),
deleted as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   using ended
   where jobs.id = ended.id
  returning jobs.id
),
last as (
  select ended.id, ended.run_at from ended order by ended.run_at desc, ended.id desc limit 1
)
select
  (select id from last),
  (select (run_at at time zone 'UTC')::text from last),
  (select count(*) from deleted)
