-- Delete the next jobs that failed for good, those that failed first first; answers where that ended, and how many.
-- It needs our own index of failed jobs, which leads to a few of them among very many others; without it the table would
-- be sorted for every batch. A row that somebody holds at the moment, to retry it perhaps, is passed by.
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
