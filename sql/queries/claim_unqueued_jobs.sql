-- Claim jobs that have no named queue, unless a job in a queue is waiting; a last row without an id reports that one is.
--
-- The whole claim has some thirty parts, and preparing them takes longer than finding one job. In schemas without named
-- queues this takes half of that time, which is what a job waits for that is added to an empty queue. It claims nothing
-- when there are queued jobs, which may be more urgent: then claim_jobs.sql has to compare them. The parts that both have
-- are the same.
with recursive
\set PRIORITIES unqueued_priorities
\set QUEUE 'is null'
\ir parts/priorities.sql
\set FROM ''
queued (anything) as materialized (
  select exists (
           select
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is not null
         )
),
unqueued as materialized (
  select due.id, due.row, null::int as job_queue_id, due.bytes
    from (select * from unqueued_priorities where not (select anything from queued)) as unqueued_priorities
   cross join lateral (
           \ir parts/lock_unqueued.sql
         ) as due
   limit %(limit)s
),
\set LOCKED unqueued
\set ORDER ''
\ir parts/within_bytes.sql
\set NAME null::text
\ir parts/claimed.sql
union all
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
  from queued
 where queued.anything
