-- Whether one of these named queues is unlocked and has a job that this worker could run now. No row is locked, as in
-- is_anything_runnable.sql.
select exists (
         select
           from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
          cross join lateral (
                  select
                    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                   where jobs.is_available = true
                     and jobs.job_queue_id = queues.id
                     \ir parts/is_runnable.sql
                   limit 1
                ) as due
          where queues.queue_name = any(%(queue_names)s::text[])
            and queues.is_available = true
       )
