-- The tasks of the jobs that a selection means, with their numbers, the largest first.
select tasks.identifier, counted.jobs
  from (
         select jobs.task_id, count(*) as jobs
           from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where :SELECTION
          group by jobs.task_id
       ) as counted
  join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = counted.task_id
 order by counted.jobs desc, tasks.identifier
 limit %(most)s::bigint
