-- Claim jobs for one worker: those without a queue, and the next ones of unlocked queues.
--
-- A queue's row is locked before its jobs are taken, so two workers can never both hold it, and `skip locked` makes a
-- claim never wait. The parts that lock repeat their conditions: a row that changed since the snapshot is checked again by
-- the conditions of the part that locks it, and by those alone.
--
-- What a claim costs must not grow with what it cannot take:
-- * Jobs of later are stepped over by asking for each priority that occurs (`priorities`), instead of reading past them.
-- * Dead rows that an open transaction elsewhere keeps from being removed are skipped if the caller gives for some
--   priorities where the waiting jobs began last time (`known`); all others are read from their beginning (`fresh`).
--   That finds queues; the jobs are then each queue's first, for one that was held for long has some before all others.
-- * Jobs of locked queues are read up to the first `scan_limit` queued jobs (`near`). When those are used up, `scan` steps from
--   queue to queue, in an index that begins with the queue, and asks free ones for their first jobs (`far`).
-- * The tie-break by id belongs to queues; jobs without one would be sorted by it at every claim.
-- * Jobs to lock are found by id. `is not false` there means the same as `= true`, but fits no index of waiting jobs: with
--   statistics from a time when no queued job waited, the planner would read one of those whole.
-- A session that claims does not wait for the disk: a claim lost in a crash is made again. That would run two jobs of one
-- queue at the same time, so a claim that holds a queue (`locked_queues`) is as durable as any other commit.
-- Both kinds together are cut to the limit: a worker must not take what it has no thread for, nor a less urgent job
-- because it is of the other kind. So the queued ones are first compared with a `peek` at the others (`urgent`), and locked; then
-- as many of the others are locked as there is room for. Cutting after locking cost half of what was locked.
--
-- The last row has no id. It reports the names of the locked queues as JSON: a search for each job took a tenth of the
-- claim. It also reports whether all other waiting jobs are in the only queue that is now locked, and the queue where
-- the next claim can go on when a scan reached its limit.
with recursive
\set PRIORITIES unqueued_priorities
\set SINCE unqueued_since
\set QUEUE 'is null'
\ir parts/priorities_since.sql
\set PRIORITIES queued_priorities
\set SINCE queued_since
\set QUEUE 'is not null'
\ir parts/priorities_since.sql
near as materialized (
  select due.*
    from queued_priorities
   cross join lateral (
           select jobs.id, jobs.job_queue_id, jobs.priority, jobs.run_at
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is not null
              and jobs.priority = queued_priorities.priority
              and jobs.run_at >= queued_priorities.since
              \ir parts/is_runnable.sql
            order by jobs.run_at, jobs.id
            limit %(scan_limit)s::bigint
         ) as due
   limit %(scan_limit)s::bigint
),
places as materialized (
  select near.*, row_number() over (partition by job_queue_id order by priority, run_at, id) as place
    from near
),
near_free_queues as materialized (
  select queues.id
    from places
    join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = places.job_queue_id
   where places.place = 1
     and queues.is_available = true
),
near_picks as materialized (
  select *
    from (
           select places.id, places.job_queue_id, places.priority, places.run_at
             from places
            where %(queued_priorities)s::int[] is null
              and places.place <= %(per_queue)s::bigint
              and (places.job_queue_id in (select id from near_free_queues)) is true
           union all
           (
             select due.*
               from (
                      select places.job_queue_id
                        from places
                       where %(queued_priorities)s::int[] is not null
                         and places.place = 1
                         and (places.job_queue_id in (select id from near_free_queues)) is true
                       order by places.priority, places.run_at, places.id
                    ) as free
              cross join lateral (
                      select jobs.id, jobs.job_queue_id, jobs.priority, jobs.run_at
                        from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                       where jobs.is_available = true
                         and jobs.job_queue_id = free.job_queue_id
                         \ir parts/is_runnable.sql
                       order by jobs.priority, jobs.run_at, jobs.id
                       limit %(per_queue)s::bigint
                    ) as due
              limit %(scan_limit)s::bigint
           )
         ) as of_free_queues
   order by priority, run_at, id
   limit %(limit)s::bigint
),
scan (queue_id, steps) as (
  select (
           select jobs.job_queue_id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is not null
              and jobs.job_queue_id >= %(scan_from)s::int
            order by jobs.job_queue_id
            limit 1
         ),
         1
   where (select count(*) from near) >= %(scan_limit)s::bigint
     and (select count(*) from near_picks) < %(limit)s::bigint
  union all
  select (
           select jobs.job_queue_id
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is not null
              and jobs.job_queue_id > scan.queue_id
            order by jobs.job_queue_id
            limit 1
         ),
         scan.steps + 1
    from scan
   where scan.queue_id is not null
     and scan.steps < %(scan_limit)s::bigint
),
far_picks as materialized (
  select due.*
    from scan
    join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = scan.queue_id
   cross join lateral (
           select jobs.id, jobs.job_queue_id, jobs.priority, jobs.run_at
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id = queues.id
              \ir parts/is_runnable.sql
            order by jobs.priority, jobs.run_at, jobs.id
            limit %(per_queue)s::bigint
         ) as due
   where queues.is_available = true
     and (queues.id in (select id from near_free_queues)) is not true
   limit %(limit)s::bigint
),
picks as materialized (
  select * from near_picks
  union all
  select * from far_picks
  limit %(limit)s::bigint
),
peek as materialized (
  select due.*
    from unqueued_priorities
   cross join lateral (
           select jobs.id, null::int as job_queue_id, jobs.priority, jobs.run_at
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is null
              and jobs.priority = unqueued_priorities.priority
              and jobs.run_at >= unqueued_priorities.since
              \ir parts/is_runnable.sql
            order by jobs.run_at
            limit %(limit)s::bigint
         ) as due
   where (select count(*) from picks) > 0
   limit %(limit)s::bigint
),
urgent as materialized (
  select id, job_queue_id
    from (select * from picks union all select * from peek) as both_kinds
   order by priority, run_at, id
   limit %(limit)s::bigint
),
held_queues as materialized (
  select queues.id, queues.queue_name
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   where queues.id = any(array(select distinct job_queue_id from urgent where job_queue_id is not null))
     and queues.is_available = true
     for update skip locked
),
queued as materialized (
  select
    jobs.id,
    jobs.job_queue_id,
    jobs.priority,
    jobs.run_at,
    \ir parts/payload_bytes.sql
    as bytes
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(array(
           select urgent.id
             from urgent
            where (urgent.job_queue_id in (select id from held_queues)) is true
         ))
     and jobs.is_available is not false
     and jobs.job_queue_id = any(array(select id from held_queues))
     \ir parts/is_runnable.sql
     for update skip locked
),
\set FROM 'and jobs.run_at >= unqueued_priorities.since'
unqueued as materialized (
  select due.id, null::int as job_queue_id, due.priority, due.run_at, due.bytes
    from unqueued_priorities
   cross join lateral (
           \ir parts/lock_unqueued.sql
         ) as due
   limit %(limit)s::bigint - (select count(*) from queued)
),
locked as materialized (
  select * from queued
  union all
  select * from unqueued
),
\set LOCKED locked
\set ORDER 'order by locked.priority, locked.run_at, locked.id'
\ir parts/within_bytes.sql
\ir parts/locked_queues.sql
\set NAME null::text
\set CHOSEN 'id from chosen'
\ir parts/claimed.sql
union all
select null, null, held.names::text, is_rest.locked::integer, null, null, null, null, null, null, null, null,
       (
         select scan.queue_id
           from scan
          where scan.steps >= %(scan_limit)s::bigint
            and scan.queue_id is not null
       ),
       null, null, null
  from (
         select count(*) as queues,
                min(held_queues.id) as first_id,
                pg_catalog.json_object_agg(held_queues.id, held_queues.queue_name) as names
           from held_queues
       ) as held
 cross join lateral (
         select held.queues = 1
            and %(queued_priorities)s::int[] is null
            and not exists (select from unqueued_priorities where priority is not null)
            and (
                  select jobs.job_queue_id
                    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                   where jobs.is_available = true
                     and jobs.job_queue_id is not null
                     and jobs.job_queue_id < held.first_id
                   order by jobs.job_queue_id
                   limit 1
                ) is null
            and (
                  select jobs.job_queue_id
                    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                   where jobs.is_available = true
                     and jobs.job_queue_id is not null
                     and jobs.job_queue_id > held.first_id
                   order by jobs.job_queue_id
                   limit 1
                ) is null
       ) as is_rest (locked)
