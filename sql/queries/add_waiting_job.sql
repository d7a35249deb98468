-- Add one job that waits until others have ended.
\set TASK '%(identifier)s::text'
\set QUEUE '%(queue_name)s::text'
select
  \ir parts/added_job.sql
from :GRAPHILE_WORKER_SCHEMA._private_gw_add_waiting(
  %(job)s::text::json, %(after)s::bigint[], %(on_failure)s::text
) as job
