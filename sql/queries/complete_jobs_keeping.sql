-- Delete jobs that these claims ran to their end, as complete_jobs.sql does, and move them to history.
-- One statement does both, so that a job is in exactly one place. Only a row that was deleted is recorded: a statement
-- that is sent again finds no row of the claim and records nothing.
with
\ir parts/kept.sql
\set RETURNED 'jobs.id, jobs.attempts, jobs.max_attempts, jobs.key, jobs.created_at, jobs.payload'
\ir parts/completed.sql
,
\set SETTLED completed
results as (
  select *
    from unnest(%(ids)s::bigint[], %(results)s::text[], %(result_errors)s::text[]) as results (id, result, error)
),
recorded as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_history (
    \ir parts/history_columns.sql
    , result, error
  )
  select
    \ir parts/history_values.sql
    'completed',
    true,
    results.result::json,
    results.error
    from completed
    join kept on kept.id = completed.id
    join results on results.id = completed.id
),
\set ENDED completed
\ir parts/notified_waiters.sql
\ir parts/released_queues.sql
\ir parts/settled_ids_notified.sql
