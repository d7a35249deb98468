-- Return the jobs, and release the queues, that this worker has locked without knowing: their ids, how many queues, and
-- how many locks are left. The answer to a claim was lost, it arrived late, or another session gave the worker a lock.
-- Nothing waits here for other sessions: a row that one has locked is left to the next check, and with a job all queues.
-- `locked_at` is compared again when a row is locked, because the lock may be one that the ledger knows by then: a resume
-- gives a queue's lock to the job that runs.
-- The attempt is not counted, for it never began, unless the job was removed or superseded since.
with locked as materialized (
  select jobs.id, jobs.locked_at, jobs.locked_by
   \ir parts/from_locked_jobs.sql
),
unknown_jobs as materialized (
  select locked.id, locked.locked_at
    from locked
   where locked.locked_by = %(worker_id)s::text
     and (
           locked.id,
           \set TIME locked.locked_at
           \ir parts/claim_number.sql
         ) not in (
           select
             known.id,
             \set TIME known.locked_at
             \ir parts/claim_number.sql
             from unnest(%(ids)s::bigint[], %(claims)s::timestamptz[]) as known (id, locked_at)
         )
),
found_jobs as materialized (
  select jobs.id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
    join unknown_jobs on unknown_jobs.id = jobs.id
   where jobs.id = any(array(select unknown_jobs.id from unknown_jobs))
     and jobs.locked_by = %(worker_id)s::text
     and jobs.locked_at = unknown_jobs.locked_at
   order by jobs.id
     for update of jobs skip locked
),
returned as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = case
           when
           \set ROW jobs
           \ir parts/was_retired.sql
           then jobs.attempts
           else greatest(0, jobs.attempts - 1)
         end,
         locked_at = null,
         locked_by = null
   where jobs.id = any(array(select found_jobs.id from found_jobs))
  returning jobs.id
),
unknown_queues as materialized (
  select queues.id, queues.locked_at
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
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
),
found_queues as materialized (
  select queues.id
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
    join unknown_queues on unknown_queues.id = queues.id
   where queues.id = any(array(select unknown_queues.id from unknown_queues))
     and queues.locked_by = %(worker_id)s::text
     and queues.locked_at = unknown_queues.locked_at
     and (select count(*) from returned) = (select count(*) from unknown_jobs)
   order by queues.id
     for update of queues skip locked
),
released as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = null,
         locked_by = null
   where queues.id = any(array(select found_queues.id from found_queues))
  returning queues.id
)
select array(select returned.id from returned),
       (select count(*) from released),
       (select count(*) from unknown_jobs) - (select count(*) from returned)
       + (select count(*) from unknown_queues) - (select count(*) from released)
