-- Whether there is a job this pool could run now. No row is locked, so a job that a claim would step over because its
-- row is locked for a moment is seen: a run that ends when nothing is left asks this before it ends.
select exists (
  select
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.is_available = true
     and jobs.run_at <= coalesce(%(now)s::timestamptz, now())
     and jobs.task_id = any(%(task_ids)s::int[])
     and (%(forbidden_flags)s::text[] is null or (jobs.flags ?| %(forbidden_flags)s::text[]) is not true)
     and (
       jobs.job_queue_id is null
       or exists (
         select
           from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
          where queues.id = jobs.job_queue_id
            and queues.is_available = true
       )
     )
)
