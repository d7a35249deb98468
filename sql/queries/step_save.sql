-- Keep the result or the cursor of a step, if the claim still holds the job; no row: it does not.
-- The job's row stays locked until the transaction ends, so no sweep gives the job to another worker before that.
with held as (
  select jobs.id, jobs.created_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = %(job_id)s::bigint
     \set ROW jobs
     \set CLAIMS 'array[%(claimed_at)s::timestamptz]'
     \ir parts/is_of_claim.sql
     for share
)
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps (job_id, name, value, finished, attempt, job_created_at)
select held.id, %(name)s::text, %(value)s::text::json, %(finished)s::boolean, %(attempt)s::integer, held.created_at
  from held
on conflict (job_id, name) do update
   set value = excluded.value,
       finished = excluded.finished,
       attempt = excluded.attempt,
       saved_at = now(),
       job_created_at = excluded.job_created_at,
       kept_until = null
returning steps.job_id
