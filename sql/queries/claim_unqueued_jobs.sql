-- Claim jobs that have no named queue; a last row without an id reports that claim_jobs.sql must claim the rest.
--
-- The whole claim has some thirty parts, and preparing them takes longer than finding one job. This takes half of that
-- time, which is what a job waits for that is added to an empty queue. So this statement leaves what is rare to
-- claim_jobs.sql: queued jobs, which may be more urgent, and payloads of more than their share of the memory for a claim.
with recursive
\set PRIORITIES unqueued_priorities
\set AMONG 'and jobs.job_queue_id is null'
\ir parts/priorities.sql
queued (anything) as materialized (
  select exists (
           select
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is not null
         )
),
unqueued as materialized (
  select due.id, due.bytes <= %(max_bytes)s::bigint / %(limit)s::bigint as fits
    from (select * from unqueued_priorities where not (select anything from queued)) as unqueued_priorities
   cross join lateral (
           \ir parts/lock_unqueued.sql
         ) as due
   limit %(limit)s::bigint
),
\set CHOSEN 'id from unqueued where fits'
\set NAME null::text
\ir parts/claimed.sql
union all
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
  from queued
 where queued.anything
    or exists (select from unqueued where not fits)
