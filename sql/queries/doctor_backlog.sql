-- The tasks of the jobs that are next in line, and how long the first job of each has been due: no longer than it has
-- existed.
-- It reads the head of the index that claims use: jobs of served tasks leave it soon, those of other tasks stay.
with head as materialized (
  select jobs.task_id,
         greatest(jobs.run_at, jobs.created_at) as due_at,
         row_number() over (order by jobs.priority, jobs.run_at) as place
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.is_available = true
     and jobs.run_at <= now()
   order by jobs.priority, jobs.run_at
   limit 1000
)
select tasks.identifier,
       date_part('epoch', now() - (array_agg(head.due_at order by head.place))[1])
  from head
  join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = head.task_id
 group by tasks.identifier
 order by min(head.place)
