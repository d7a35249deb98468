-- Queued jobs to claim from other queues, when those of the first queued jobs gave too few: otherwise `scan` has no row.
-- It leaps from queue to queue in an index that begins with the queue, at most `scan_limit` times.
scan (queue_id, steps) as (
  select (
           \set FROM 'and jobs.job_queue_id >= %(scan_from)s::int'
           \ir parts/next_queue.sql
         ),
         1
   where (select count(*) from near) >= %(scan_limit)s::bigint
     and (select count(*) from near_picks) < %(limit)s::bigint
  union all
  select (
           \set FROM 'and jobs.job_queue_id > scan.queue_id'
           \ir parts/next_queue.sql
         ),
         scan.steps + 1
    from scan
   where scan.queue_id is not null
     and scan.steps < %(scan_limit)s::bigint
),
\set QUEUE free.id
far_picks as materialized (
  select due.*
    from scan
   cross join lateral (
           select queues.id
             from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
            where queues.id = scan.queue_id
              and queues.is_available = true
           offset 0
         ) as free
   cross join lateral (
           \ir parts/first_of_queue.sql
         ) as due
   where (free.id in (select id from near_free_queues)) is not true
   limit %(limit)s::bigint
),
