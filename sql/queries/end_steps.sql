-- Delete the steps of jobs that are gone, and keep those of jobs in history for as long as history keeps the job.
-- Null instead of ids: of all jobs, at most 10,000, and delete what history no longer keeps.
-- The jobs are looked up one by one: a join could read the whole table of jobs.
with open_steps as (
  select distinct steps.job_id, steps.job_created_at
    from :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps
   where steps.kept_until is null
     and (%(ids)s::bigint[] is null or steps.job_id = any(%(ids)s::bigint[]))
   limit 10000
),
gone as materialized (
  select open_steps.job_id,
         open_steps.job_created_at,
         (
           select pg_catalog.max(history.expires_at)
             from :GRAPHILE_WORKER_SCHEMA._private_gw_history as history
            where history.job_id = open_steps.job_id
              and history.created_at = open_steps.job_created_at
         ) as kept_until
    from open_steps
   where (
           select jobs.id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.id = open_steps.job_id
              and jobs.created_at = open_steps.job_created_at
         ) is null
),
kept as (
  update :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps
     set kept_until = gone.kept_until
    from gone
   where steps.job_id = gone.job_id
     and steps.job_created_at = gone.job_created_at
     and gone.kept_until is not null
),
dropped as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps
   using gone
   where steps.job_id = gone.job_id
     and steps.job_created_at = gone.job_created_at
     and gone.kept_until is null
),
expired as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps
   where steps.kept_until < now()
     and %(ids)s::bigint[] is null
)
select count(*) from gone
