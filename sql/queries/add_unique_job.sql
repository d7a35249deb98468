-- Add one job that is unique for a time, or return the one that is there, or was.
select
  \ir parts/added_job.sql
from :GRAPHILE_WORKER_SCHEMA._private_gw_add_unique(
  %(job)s::text::json, %(unique_key)s::text, %(period_seconds)s::double precision
) as job
