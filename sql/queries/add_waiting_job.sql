-- Add one job that waits until others have ended. With `:EXPIRES` it expires unless it starts in time.
\set EXPIRES false
\set TASK '%(identifier)s::text'
\set QUEUE '%(queue_name)s::text'
\set SPEC '%(job)s::text::json'
\set JOB '%(job)s::text::json'
with
\if :EXPIRES
\set JOB '(select expiring.job from expiring_job as expiring)'
expiring_job as materialized (
  select
    \ir parts/expiring_job.sql
    as job
),
\endif
added as materialized (
  select job.*
    from :GRAPHILE_WORKER_SCHEMA._private_gw_add_waiting(
           :JOB, %(after)s::bigint[], %(on_failure)s::text
         ) as job
)
\if :EXPIRES
,
\ir parts/listed_expiries.sql
\endif
select
  \ir parts/added_job.sql
from added as job
