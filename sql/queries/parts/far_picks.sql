-- Queued jobs to claim from other queues, when those of the first queued jobs gave too few: otherwise `scan` has no row.
-- It leaps from queue to queue in an index that begins with the queue, at most `scan_limit` times.
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
