-- Add many jobs in one statement through the schema's own function; answers their ids.
-- Columns travel as arrays: building the composite values here costs half of what parsing one JSON document does. The two
-- that every job has travel in binary (`b`): as text each value is quoted on its way, which cost a quarter of all time.
-- All keyed jobs of one call share one way of treating `run_at`; the store splits a mixed call.
select job.id
from :GRAPHILE_WORKER_SCHEMA.add_jobs(
  array(
    select (
             spec.identifier,
             spec.payload::json,
             spec.queue_name,
             coalesce(spec.run_at, now() + make_interval(secs => spec.delay_seconds)),
             spec.max_attempts::smallint,
             spec.job_key,
             spec.priority::smallint,
             case when spec.flags is not null then array(select json_array_elements_text(spec.flags::json)) end
           ):::GRAPHILE_WORKER_SCHEMA.job_spec
      from unnest(
             %(identifiers)b::text[],
             %(payloads)b::text[],
             %(queue_names)s::text[],
             %(run_ats)s::timestamptz[],
             %(delays)s::double precision[],
             %(max_attempts)s::int[],
             %(job_keys)s::text[],
             %(priorities)s::int[],
             %(flags)s::text[]
           ) with ordinality
           as spec (identifier, payload, queue_name, run_at, delay_seconds, max_attempts, job_key, priority, flags, place)
     order by spec.place
  ),
  %(preserve_run_at)s
) as job
