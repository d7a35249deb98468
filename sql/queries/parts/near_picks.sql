-- Queued jobs to claim from the queues of the first `scan_limit` queued jobs. Jobs of locked queues are among these, so
-- their number is bounded.
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
-- Looked up by id: with statistics from a time when there were no queues, a join would compare each with each.
near_free_queues as materialized (
  select queues.id
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   where queues.id = any(array(select places.job_queue_id from places where places.place = 1))
     and queues.is_available = true
),
-- Up to `per_queue` of each queue. Where reading began behind dead rows, each queue is read again from its beginning: one
-- that was locked for long has jobs before all that were read.
\set QUEUE free.job_queue_id
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
                      \ir parts/first_of_queue.sql
                    ) as due
              limit %(scan_limit)s::bigint
           )
         ) as of_free_queues
   order by priority, run_at, id
   limit %(limit)s::bigint
),
