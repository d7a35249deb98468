-- Record the failures of these claims and release the queues they were the last of, if `:RELEASES`.
-- With `:KEEPS` the attempts are added to history. The job stays in the queue, also after its last attempt, so its row
-- in history is not the final one.
-- The backoff is Graphile Worker's: e^min(attempts, 10) seconds by the database's clock; the claim counted the attempt.
-- A final failure uses up all attempts, for the backoff as well: readers infer the time of a failure from both.
-- A job that was removed or superseded while it ran has attempts = max_attempts already and stays as it is: failed.
\set RELEASES true
\set KEEPS false
\set NOTIFIES false
\set MEMBERS true
\set SETTLED failed
\set RETURNED 'jobs.id, jobs.flags'
with
\if :KEEPS
\set NOTIFIES true
\set RETURNED 'jobs.id, jobs.flags, jobs.attempts, jobs.max_attempts, jobs.key, jobs.created_at, jobs.payload, jobs.last_error'
\ir parts/kept.sql
\endif
failures as (
  select *
    from rows from (
           unnest(
             %(ids)s::bigint[],
             %(messages)s::text[],
             %(delays)s::double precision[],
             %(finals)s::boolean[],
             %(payloads)s::text[]
           ),
           \ir parts/expects_many_rows.sql
         ) as failures (id, message, delay_seconds, final, payload, place)
),
failed as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set last_error = failures.message,
         run_at = greatest(now(), jobs.run_at)
                  + make_interval(
                      secs => coalesce(
                        failures.delay_seconds,
                        exp(least(greatest(jobs.attempts, case when failures.final then jobs.max_attempts end), 10)::float8)
                      )
                    ),
         attempts = greatest(jobs.attempts, case when failures.final then jobs.max_attempts end),
         payload = coalesce(failures.payload::json, jobs.payload),
         locked_at = null,
         locked_by = null
    from failures
   where jobs.id = any(%(ids)s::bigint[])
     and jobs.id = failures.id
     \set ROW jobs
     \set CLAIMS '%(claims)s::timestamptz[]'
     \ir parts/is_of_claim.sql
  returning :RETURNED
)
\if :KEEPS
,
errors as (
  select *
    from unnest(%(ids)s::bigint[], %(error_types)s::text[], %(tracebacks)s::text[]) as errors (id, type, traceback)
),
recorded as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_history (
    \ir parts/history_columns.sql
    , error, error_type, traceback
  )
  select
    \ir parts/history_values.sql
    case when failed.attempts >= failed.max_attempts then 'failed' else 'retried' end,
    false,
    failed.last_error,
    errors.type,
    errors.traceback
    from failed
    join kept on kept.id = failed.id
    join errors on errors.id = failed.id
),
ended as (
  select id from failed where attempts >= max_attempts
),
\set ENDED ended
\ir parts/notified_waiters.sql
\endif
\ir parts/released_queues.sql
\ir parts/settled_ids.sql
