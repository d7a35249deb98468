-- Claim jobs for one worker: those without a queue, and the next ones of unlocked queues.
--
-- The parts, in the order in which jobs pass through them; `gw sql claim_jobs` prints them all:
--
--   unqueued_priorities   the priorities of waiting jobs without a queue
--   queued_priorities     the priorities of waiting jobs with one
--   near                  the first queued jobs
--   places                their places within each queue
--   near_free_queues      their queues that no worker has locked
--   near_picks            the jobs to take from these queues
--   scan                  the queues further on, if near was used up
--   far_picks             the jobs to take from those that no worker has locked
--   picks                 near_picks and far_picks
--   peek                  the first jobs without a queue, to compare
--   urgent                the most urgent of picks and peek, as many as the limit
--   queue_rows            the queues of these, row by row locked
--   queued                the urgent jobs of these queues, row by row locked
--   unqueued              jobs without a queue, row by row locked, as many as there is room for
--   locked                queued and unqueued
--   chosen                as many of these as fit into memory
--   locked_queues         gives the queues of the chosen jobs to the worker
--   claimed               gives the chosen jobs to the worker, and returns them
--
-- The last row of the answer is no job: it reports what the next claim should know.
--
-- Three rules explain their form:
-- * Two workers never lock the same queue: its row is locked before those of its jobs. `skip locked` makes a claim never
--   wait.
--   The parts that lock repeat their conditions: a row that changed since the snapshot is checked again by the conditions
--   of the part that locks it, and by those alone.
-- * A claim costs no more when much waits that it cannot take. It steps over scheduled jobs, over locked queues, and over
--   dead rows that an open transaction elsewhere keeps from being removed.
-- * A worker takes no more than it has threads for, and the most urgent jobs of both kinds. So both are compared before
--   any is locked: when they were cut after locking, that cost half of the locks.
--
-- A session that claims does not wait for the disk: a claim lost in a crash is made again. That would run two jobs of one
-- queue at the same time, so a claim that locks a queue is as durable as any other commit.
with recursive
\set PRIORITIES unqueued_priorities
\set SINCE unqueued_since
\set QUEUE 'is null'
\ir parts/priorities_since.sql
\set PRIORITIES queued_priorities
\set SINCE queued_since
\set QUEUE 'is not null'
\ir parts/priorities_since.sql
\ir parts/near_picks.sql
\ir parts/far_picks.sql
picks as materialized (
  select * from near_picks
  union all
  select * from far_picks
  limit %(limit)s::bigint
),
-- Without picks, nothing is to be compared. The order by id belongs to queues: without one, jobs would be sorted by it at
-- every claim.
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
-- Of jobs without a queue only the number matters here: `unqueued` reads them again.
urgent as materialized (
  select id, job_queue_id
    from (select * from picks union all select * from peek) as both_kinds
   order by priority, run_at, id
   limit %(limit)s::bigint
),
\set PICKS urgent
\ir parts/lock_queued.sql
\set COLUMN id
unqueued as materialized (
  select due.row as id, null::int as job_queue_id, due.priority, due.run_at, due.bytes
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
\ir parts/claim_report.sql
