-- Claim jobs that have no named queue; a last row without an id reports that claim_jobs.sql must claim the rest.
--
-- The whole claim has some thirty parts, and preparing them takes longer than finding one job. This takes half of that
-- time, which is what a job waits for that is added to an empty queue. So this statement leaves what is rare to
-- claim_jobs.sql: queued jobs, which may be more urgent, and payloads of more than their share of the memory for a claim.
--
-- It also leaves a row that another session changed between snapshot and lock. The lock holds the new version of the row,
-- which an update by address (`ctid`) does not find. An update by id follows the row to that version, but searches the
-- primary key for each row: 0.5 us of 7.5 for each job of a large claim, where the two counts cost 5 us for each claim.
with recursive
\set KNOWN %(known_priority)s::smallint
\set BELOW 'and jobs.priority < coalesce(%(known_priority)s::smallint, 32768)'
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
\set COLUMN ctid
unqueued as materialized (
  select due.row, due.bytes <= %(max_bytes)s::bigint / %(limit)s::bigint as fits
    from (select * from unqueued_priorities where not (select anything from queued)) as unqueued_priorities
   cross join lateral (
           \ir parts/lock_unqueued.sql
         ) as due
   limit %(limit)s::bigint
),
\set CHOSEN 'row from unqueued where fits'
\set NAME null::text
\ir parts/claimed.sql
union all
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
  from queued
 where queued.anything
    or (select count(*) from claimed) < (select count(*) from unqueued)
