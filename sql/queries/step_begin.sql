-- Begin the steps of an attempt: what the steps of the job have kept for it. `step_save` keeps the next ones.
-- A job that is added again under its key is replaced, and starts over. Its steps would be those of another payload.
-- Only a replacement takes the flag `gw:steps` away, so a job without it has no steps. A job that was never added again
-- needs no flag; one that has a key gets it here, before its first step is kept.
-- A row without a name reports that row security may hide rows, or that the role may lack the right to keep a step. With
-- `:CHECKED` the server then reports a missing right: `keepable` changes nothing, but needs the same rights. A role that
-- cannot keep a step must not run it, because each attempt would run it again.
\set CHECKED false
with tables as materialized (
  select to_regclass(pg_catalog.format('%%I._private_jobs', %(schema)s::text))::oid as jobs,
         to_regclass(pg_catalog.format('%%I._private_gw_steps', %(schema)s::text))::oid as steps
),
job as materialized (
  select jobs.id,
         jobs.revision = 0 or coalesce(jobs.flags ? 'gw:steps', false) as is_same,
         not coalesce(jobs.flags ? 'gw:steps', false) and (jobs.key is not null or jobs.revision > 0) as needs_flag
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = %(job_id)s::bigint
     and jobs.created_at = %(created_at)s::timestamptz
),
\if :CHECKED
keepable as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps (job_id, name, value, finished, attempt, job_created_at)
  select job.id, '', null::json, false, 0, %(created_at)s::timestamptz
    from job
   where false
  on conflict (job_id, name) do update
     set value = excluded.value
),
\endif
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
 union all
select null, null, null
  from tables
 where row_security_active(tables.jobs)
    or row_security_active(tables.steps)
    or not has_table_privilege(tables.steps, 'insert')
    or not has_table_privilege(tables.steps, 'update')
