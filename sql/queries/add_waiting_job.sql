-- Add one job that waits until others have ended. With `:EXPIRES` it expires unless it starts in time.
\set EXPIRES false
\set TASK '%(identifier)s::text'
\set QUEUE '%(queue_name)s::text'
\set JOB '%(job)s::text::json'
with
\ir parts/given_job.sql
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
