-- Delete the next permanently failed jobs; returns the last id and their number.
-- Rows that another session locks, for example to retry the job, are skipped.
with ended as materialized (
  select jobs.id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id > %(after)s::bigint
     and jobs.locked_at is null
     and jobs.attempts >= jobs.max_attempts
   order by jobs.id
   limit %(limit)s
     for update skip locked
),
deleted as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   using ended
   where jobs.id = ended.id
  returning jobs.id
)
select max(deleted.id), count(*) from deleted
