-- Claim jobs of some named queues for one worker that leaves all others, from each queue that is unlocked.
-- It reads each queue by an index that begins with the queue, so what waits elsewhere costs nothing. The queues have
-- names, because one that a cleanup deletes comes back with another id.
with
\set QUEUE queues.id
picks as materialized (
  select due.*
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   cross join lateral (
           \ir parts/first_of_queue.sql
         ) as due
   where queues.queue_name = any(%(queue_names)s::text[])
     and queues.is_available = true
   order by due.priority, due.run_at, due.id
   limit %(limit)s::bigint
),
\set PICKS picks
\ir parts/lock_queued.sql
\set LOCKED queued
\set ORDER 'order by locked.priority, locked.run_at, locked.id'
\ir parts/within_bytes.sql
\ir parts/locked_queues.sql
\set NAME '(select queue_rows.queue_name from queue_rows where queue_rows.id = jobs.job_queue_id)'
\set CHOSEN 'id from chosen'
\set COLUMN id
\ir parts/claimed.sql
