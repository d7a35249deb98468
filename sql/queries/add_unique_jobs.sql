-- Add jobs that are unique for a time, or find those that are there, or were. Returns the id of each in the order of the
-- jobs, and whether it was added; with `:WHOLE` all of its columns come first.
-- With `:EXPIRES` some of them expire unless they start in time, and then no two have the same job key.
\set EXPIRES false
\set WHOLE false
\set DOCUMENT %(jobs)s::text::json
\set SPEC given.job
\set TASK job.task
\set QUEUE 'case when job.task_id is null or job.job_queue_id is not null then coalesce(stored.queue_name, job.queue_name) end'
with given as materialized (
  select spec.*, spec.job->>'task'::text as task, spec.job->>'queue_name'::text as queue_name
    from rows from (
           json_to_recordset(%(jobs)s::text::json) as (job json, unique_key text, period_seconds double precision)
         ) with ordinality as spec
),
\if :EXPIRES
\set DOCUMENT '(select expiring_jobs.document from expiring_jobs)'
expiring_jobs as materialized (
  select pg_catalog.json_agg(
           pg_catalog.json_build_object(
             'job'::text, expiring.job,
             'unique_key'::text, given.unique_key,
             'period_seconds'::text, given.period_seconds
           )
           order by given.ordinality
         ) as document
    from given
   cross join lateral (
           select
             \ir parts/expiring_job.sql
             as job
         ) as expiring
),
\endif
found as materialized (
  select (stored.job).*, stored.is_new, given.ordinality, given.task, given.queue_name
    from :GRAPHILE_WORKER_SCHEMA._private_gw_add_unique(
           :DOCUMENT
         ) with ordinality as stored
    join given on given.ordinality = stored.ordinality
)
\if :EXPIRES
,
added as (
  select found.id, found.flags from found where found.is_new
),
\ir parts/listed_expiries.sql
\endif
select
\if :WHOLE
  \ir parts/added_job.sql
  ,
\endif
  job.id,
  job.is_new
from found as job
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as stored on stored.id = job.job_queue_id
order by job.ordinality
