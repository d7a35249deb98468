-- Record the failures of these claims, as fail_jobs.sql does, and add the attempts to history.
-- The job stays in the queue, also after its last attempt, so its row in history is not the final one.
with
\ir parts/kept.sql
\set RETURNED 'jobs.id, jobs.attempts, jobs.max_attempts, jobs.key, jobs.created_at, jobs.payload, jobs.last_error'
\ir parts/failed.sql
,
\set SETTLED failed
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
\ir parts/released_queues.sql
\ir parts/settled_ids_notified.sql
