-- Return the jobs of these claims, which were not run to an end, and release their queues, if `:RELEASES`.
-- The attempt is not counted, except for a job that was removed or superseded while it was claimed: that took its key
-- or used up its attempts, and uncounting one would bring it back to life.
-- A job that has started loses the flag of its expiry, `expiry`.
-- Idle workers elsewhere are notified of jobs that can run now, so that they need not wait for a poll.
-- With `:UNSTARTED` some jobs, `unstarted`, have not started: they return the tokens that their claims took from a bucket.
-- Otherwise each stop of a worker costs a task with a small rate as many starts as it has prefetched. A claim that reads
-- the bucket now may undo that, which keeps the rate; the order of the rows prevents deadlocks.
\set UNSTARTED false
\set RELEASES true
\set NOTIFIES true
\set MEMBERS false
\set SETTLED returned
with
returns as (
  select *
    from rows from (
           unnest(
             %(ids)s::bigint[],
             %(attempts)s::int[],
             %(keys)s::text[],
             %(delays)s::double precision[],
             %(expiries)s::text[]
           ),
           \ir parts/expects_many_rows.sql
         ) as returns (id, attempts, key, delay_seconds, expiry, place)
),
returned as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = case
           when jobs.attempts <> returns.attempts or jobs.key is distinct from returns.key then jobs.attempts
           else greatest(0, jobs.attempts - 1)
         end,
         run_at = case
           when returns.delay_seconds > 0
           then greatest(jobs.run_at, now() + make_interval(secs => returns.delay_seconds))
           else jobs.run_at
         end,
         flags = coalesce(jobs.flags - returns.expiry, jobs.flags),
         locked_at = null,
         locked_by = null
    from returns
   where jobs.id = any(%(ids)s::bigint[])
     and jobs.id = returns.id
     \set ROW jobs
     \set CLAIMS '%(claims)s::timestamptz[]'
     \ir parts/is_of_claim.sql
  returning jobs.id, jobs.is_available and jobs.run_at <= now() as can_run
),
\if :UNSTARTED
unused as materialized (
  select limits.task, taken.value, count(*) as tokens
    from returned
    join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs on jobs.id = returned.id
    join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
    join :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits on limits.task = tasks.identifier
   cross join lateral (
           select case
                    when limits.field is null then ''
                    else :GRAPHILE_WORKER_SCHEMA._private_gw_field_value(jobs.payload, limits.field)
                  end collate pg_catalog."C" as value
         ) as taken
   where limits.per_period is not null
     and returned.id = any(%(unstarted)s::bigint[])
   group by limits.task, taken.value
),
buckets as materialized (
  select buckets.task, buckets.value, unused.tokens
    from :GRAPHILE_WORKER_SCHEMA._private_gw_buckets as buckets
    join unused on unused.task = buckets.task and unused.value = buckets.value
   order by buckets.task, buckets.value
     for update of buckets
),
filled as (
  update :GRAPHILE_WORKER_SCHEMA._private_gw_buckets as filled
     set tokens = filled.tokens + buckets.tokens::float8
    from buckets
   where filled.task = buckets.task
     and filled.value = buckets.value
),
\endif
notified as (
  select pg_notify('jobs:insert', json_build_object('r', random(), 'count', count(*))::text)
    from returned
   where can_run
  having count(*) > 0
)
\ir parts/released_queues.sql
\ir parts/settled_ids.sql
