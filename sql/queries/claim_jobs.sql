-- Claim jobs for one pool: free ones without a queue, and the next ones of free queues.
-- A queue's row is locked before its jobs are taken, so two pools can never both hold it; `skip locked` makes a claim
-- wait for nobody. The locking parts repeat their conditions: a row that changed since the snapshot is judged again by
-- the conditions of the part that locks it, and by those alone.
-- The tie-break by id belongs to queues: with it, jobs without a queue would be sorted at every claim.
with unqueued as materialized (
  select jobs.id, jobs.job_queue_id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.is_available = true
     and jobs.job_queue_id is null
     and jobs.run_at <= coalesce(%(now)s::timestamptz, now())
     and jobs.task_id = any(%(task_ids)s::int[])
     and (%(forbidden_flags)s::text[] is null or (jobs.flags ?| %(forbidden_flags)s::text[]) is not true)
   order by jobs.priority, jobs.run_at
   limit %(limit)s
     for update skip locked
),
candidates as materialized (
  select jobs.id, jobs.job_queue_id, jobs.priority, jobs.run_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
    join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
   where jobs.is_available = true
     and jobs.job_queue_id is not null
     and jobs.run_at <= coalesce(%(now)s::timestamptz, now())
     and jobs.task_id = any(%(task_ids)s::int[])
     and (%(forbidden_flags)s::text[] is null or (jobs.flags ?| %(forbidden_flags)s::text[]) is not true)
     and queues.is_available = true
   order by jobs.priority, jobs.run_at, jobs.id
   limit %(limit)s
),
places as materialized (
  select id, job_queue_id, row_number() over (partition by job_queue_id order by priority, run_at, id) as place
    from candidates
),
held_queues as materialized (
  select queues.id
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   where queues.id = any(array(select job_queue_id from places where place = 1))
     and queues.is_available = true
     for update skip locked
),
queued as materialized (
  select jobs.id, jobs.job_queue_id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(array(
           select places.id
             from places
            where places.place <= %(per_queue)s
              and (places.job_queue_id in (select id from held_queues)) is true
         ))
     and jobs.is_available = true
     and jobs.job_queue_id is not null
     and jobs.run_at <= coalesce(%(now)s::timestamptz, now())
     for update skip locked
),
locked_queues as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = now(),
         locked_by = %(pool)s
   where queues.id = any(array(select job_queue_id from queued))
)
update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   set attempts = jobs.attempts + 1,
       locked_at = now(),
       locked_by = %(pool)s
 where jobs.id = any(array(select id from unqueued union all select id from queued))
returning
  jobs.id,
  jobs.task_id,
  jobs.payload::text,
  jobs.attempts,
  jobs.max_attempts,
  jobs.priority,
  date_part('epoch', jobs.run_at),
  date_part('epoch', jobs.created_at),
  date_part('epoch', jobs.updated_at),
  jobs.revision,
  jobs.key,
  jobs.flags::text,
  jobs.job_queue_id,
  (select queues.queue_name
     from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
    where queues.id = jobs.job_queue_id),
  jobs.last_error
