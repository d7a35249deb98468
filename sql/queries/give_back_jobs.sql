-- Give back jobs this pool claimed but did not run to an end, and free their queues; answers the ids that were ours.
-- The attempt is uncounted, except for a job that was removed or superseded meanwhile: uncounting would bring it back to
-- life. Such a row differs from what was claimed in its attempts or its key; one that had neither to lose (its last
-- attempt, no key) shows it by `updated_at`, which a claim never touches. `revision` excuses an unsafe_dedupe add, which
-- touches `updated_at` of a running job and retires nothing.
-- Who is idle elsewhere hears of jobs that can run at once, and need not wait for a poll.
with returns as (
  select *
    from unnest(
           %(ids)s::bigint[],
           %(attempts)s::int[],
           %(keys)s::text[],
           %(updated)s::double precision[],
           %(revisions)s::int[],
           %(delays)s::double precision[]
         ) as claimed (id, attempts, key, updated_epoch, revision, delay_seconds)
),
given_back as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = case
           when jobs.attempts <> returns.attempts
             or jobs.key is distinct from returns.key
             or (date_part('epoch', jobs.updated_at) <> returns.updated_epoch and jobs.revision = returns.revision)
           then jobs.attempts
           else greatest(0, jobs.attempts - 1)
         end,
         run_at = case
           when returns.delay_seconds > 0
           then greatest(jobs.run_at, now() + make_interval(secs => returns.delay_seconds))
           else jobs.run_at
         end,
         locked_at = null,
         locked_by = null
    from returns
   where jobs.id = returns.id
     and jobs.locked_by = %(pool)s
  returning jobs.id, jobs.is_available and jobs.run_at <= now() as can_run
),
told as (
  select pg_notify('jobs:insert', json_build_object('r', random(), 'count', count(*))::text)
    from given_back
   where can_run
  having count(*) > 0
),
\set SETTLED given_back
\ir parts/freed_queues.sql
select id from given_back where (select count(*) from told) >= 0
