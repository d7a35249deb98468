-- Claim jobs that have no named queue; a last row without an id reports that claim_jobs.sql must claim the rest.
--
-- The whole claim has some thirty parts, and preparing them takes longer than finding one job. This takes half of that
-- time, which is what a job waits for that is added to an empty queue. Each update alone takes a sixth of it to prepare.
-- So this statement leaves what is rare to claim_jobs.sql: queued jobs, which may be more urgent; payloads that do not
-- fit into the memory for a claim; and rows that another session changed between snapshot and lock.
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
  select due.row, due.bytes
    from (select * from unqueued_priorities where not (select anything from queued)) as unqueued_priorities
   cross join lateral (
           \ir parts/lock_unqueued.sql
         ) as due
   limit %(limit)s
),
claimed as (
  \set NAME null::text
  \set ROWS 'jobs.ctid = any(array(select row from unqueued where (select sum(bytes) from unqueued) <= %(max_bytes)s))'
  \ir parts/lock_chosen.sql
)
select * from claimed
union all
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
  from queued
 where queued.anything
    or (select count(*) from claimed) < (select count(*) from unqueued)
