-- Begin the steps of an attempt: what the steps of the job have kept for it. `step_save` keeps the next ones.
-- A job that is added again under its key is replaced, and starts over. Its steps would be those of another payload.
-- Only a replacement takes the flag `gw:steps` away, so a job without it has no steps. A job that was never added again
-- needs no flag; one that has a key gets it here, before its first step is kept.
with job as materialized (
  select jobs.id,
         jobs.revision = 0 or coalesce(jobs.flags ? 'gw:steps', false) as is_same,
         not coalesce(jobs.flags ? 'gw:steps', false) and (jobs.key is not null or jobs.revision > 0) as needs_flag
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = %(job_id)s::bigint
     and jobs.created_at = %(created_at)s::timestamptz
),
flagged as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set flags = coalesce(jobs.flags, '{}'::jsonb) || '{"gw:steps": true}'::jsonb
    from job
   where jobs.id = job.id
     and job.needs_flag
),
dropped as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps
   using job
   where steps.job_id = job.id
     and steps.job_created_at = %(created_at)s::timestamptz
     and not job.is_same
)
select steps.name, steps.value::text, steps.finished
  from job
  join :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps on steps.job_id = job.id
 where job.is_same
   and steps.job_created_at = %(created_at)s::timestamptz
