-- Add one job through the schema's own function, so that keys and notifications behave as for all other clients.
-- `delay_seconds` counts from the database's clock. `:FLAGS` are the flags of the job.
from :GRAPHILE_WORKER_SCHEMA.add_job(
  identifier => %(identifier)s::text,
  payload => %(payload)s::text::json,
  queue_name => %(queue_name)s::text,
  run_at => coalesce(%(run_at)s::timestamptz, now() + make_interval(secs => %(delay_seconds)s::double precision)),
  max_attempts => %(max_attempts)s::int,
  job_key => %(job_key)s::text,
  priority => %(priority)s::int,
  flags => :FLAGS,
  job_key_mode => %(job_key_mode)s::text
) as job
