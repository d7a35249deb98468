-- Record the failures of these claims. `:RETURNED` are the columns that the statement needs of the jobs.
-- The backoff is Graphile Worker's: e^min(attempts, 10) seconds by the database's clock; the claim counted the attempt.
-- A job that was removed or superseded while it ran has attempts = max_attempts already and stays as it is: failed.
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
           \ir expects_many_rows.sql
         ) as failures (id, message, delay_seconds, final, payload, place)
),
failed as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set last_error = failures.message,
         run_at = greatest(now(), jobs.run_at)
                  + make_interval(secs => coalesce(failures.delay_seconds, exp(least(jobs.attempts, 10)::float8))),
         attempts = case when failures.final then greatest(jobs.attempts, jobs.max_attempts) else jobs.attempts end,
         payload = coalesce(failures.payload::json, jobs.payload),
         locked_at = null,
         locked_by = null
    from failures
   where jobs.id = any(%(ids)s::bigint[])
     and jobs.id = failures.id
     \set ROW jobs
     \set CLAIMS '%(claims)s::timestamptz[]'
     \ir is_of_claim.sql
  returning :RETURNED
)
