-- Add one job that expires unless it starts in time, or return the job that has its key under `unsafe_dedupe`.
-- Names that the function has just added are not in the statement's snapshot, and then they are the caller's.
\set TASK 'coalesce(stored.task, %(identifier)s::text)'
\set QUEUE 'case when job.job_queue_id is not null then coalesce(stored.queue_name, %(queue_name)s::text) end'
\set FLAGS '%(flags)s::text[]'
\set AT '%(expires_at)s::timestamptz'
\set IN '%(expires_in)s::double precision'
with expiring_job as materialized (
  select
    \ir parts/flags_expiring.sql
    as flags
),
\set FLAGS '(select expiring.flags from expiring_job as expiring)'
added as materialized (
  select job.*
  \ir parts/from_add_job.sql
),
\ir parts/listed_expiries.sql
select
  \ir parts/added_job.sql
from added as job
\ir parts/stored_names.sql
