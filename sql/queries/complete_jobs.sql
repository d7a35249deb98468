-- Delete jobs that these claims ran to their end, and release the queues they were the last of.
-- A job whose lock was released, and that was perhaps claimed again, is left alone.
-- `:RELEASES` is whether there are queues to release: to prepare that update takes a third of the time in which the
-- server completes one job.
-- With `:KEEPS` the jobs move to history. One statement does both, so that a job is in exactly one place. Only a row
-- that was deleted is recorded: a statement that is sent again finds no row of the claim and records nothing.
\set RELEASES true
\set KEEPS false
\set NOTIFIES false
\set MEMBERS true
\set SETTLED completed
\set RETURNED 'jobs.id, jobs.flags'
with
\if :KEEPS
\set NOTIFIES true
\set RETURNED 'jobs.id, jobs.flags, jobs.attempts, jobs.max_attempts, jobs.key, jobs.created_at, jobs.payload'
\ir parts/kept.sql
\endif
completed as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(%(ids)s::bigint[])
     \set ROW jobs
     \set CLAIMS '%(claims)s::timestamptz[]'
     \ir parts/is_of_claim.sql
  returning :RETURNED
)
\if :KEEPS
,
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
\endif
\ir parts/released_queues.sql
\ir parts/settled_ids.sql
