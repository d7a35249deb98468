-- How many jobs a selection means, and up to which id; the walk that acts on them ends there, whatever is added meanwhile.
select count(*),
       coalesce(max(jobs.id), 0),
       count(*) filter (where jobs.locked_at >= now() - interval '4 hours'),
       count(*) filter (where jobs.locked_at is not null),
       count(*) filter (where jobs.locked_at is null and jobs.last_error is null and jobs.attempts < jobs.max_attempts)
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
  join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
  left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
 cross join lateral (
         select
           \ir parts/state_of_job.sql
       ) as state (name)
 where (%(ids)s::bigint[] is null or jobs.id = any(%(ids)s::bigint[]))
   \ir parts/is_selected.sql
