-- Add one job.
\set TASK '%(identifier)s::text'
\set QUEUE '%(queue_name)s::text'
\set FLAGS '%(flags)s::text[]'
select
  \ir parts/added_job.sql
\ir parts/from_add_job.sql
