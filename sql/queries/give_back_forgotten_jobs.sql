-- Give back jobs and queues this pool has locked without knowing: the answer to a claim was lost with its connection.
-- It runs only after such a loss, and reads the locked jobs alone where there is an index of them.
-- The attempt is uncounted, for nobody began it, unless the job was removed or superseded meanwhile. That takes the key
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
     and jobs.locked_by = %(pool)s
     and jobs.id <> all(%(held)s::bigint[])
  returning jobs.id
),
freed as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = null,
         locked_by = null
   where queues.locked_by = %(pool)s
     and queues.id <> all(%(held_queues)s::int[])
     and (select count(*) from forgotten) >= 0
)
select id from forgotten
