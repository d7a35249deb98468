-- Return jobs and queues that this worker locked without knowing: the answer to a claim was lost with its connection.
-- It runs only after such a loss, and reads the locked jobs alone where there is an index of them.
-- The attempt is not counted, for it never began, unless the job was removed or superseded since. That takes the key
-- away, uses up the attempts and touches `updated_at`, which a claim does not.
with forgotten as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = case
           when jobs.key is null and jobs.attempts >= jobs.max_attempts and jobs.updated_at > jobs.locked_at
           then jobs.attempts
           else greatest(0, jobs.attempts - 1)
         end,
         locked_at = null,
         locked_by = null
   where jobs.locked_at is not null
     and jobs.locked_by = %(worker_id)s::text
     and (
           jobs.id,
           \set TIME jobs.locked_at
           \ir parts/claim_number.sql
         ) not in (
           select
             known.id,
             \set TIME known.locked_at
             \ir parts/claim_number.sql
             from unnest(%(ids)s::bigint[], %(claims)s::timestamptz[]) as known (id, locked_at)
         )
  returning jobs.id
),
released as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = null,
         locked_by = null
   where queues.locked_by = %(worker_id)s::text
     and (
           queues.id,
           \set TIME queues.locked_at
           \ir parts/claim_number.sql
         ) not in (
           select
             known.id,
             \set TIME known.locked_at
             \ir parts/claim_number.sql
             from unnest(%(queue_ids)s::int[], %(queue_claims)s::timestamptz[]) as known (id, locked_at)
         )
     and (select count(*) from forgotten) >= 0
)
select id from forgotten
