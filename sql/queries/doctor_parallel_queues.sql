-- Named queues of which a worker of another program locks several jobs at the same time. Graphile Worker (Node.js) 0.17
-- and graphile_worker_rs before 0.13.6 do so with a local queue, and run them at the same time.
with locked as materialized (
  select jobs.job_queue_id, jobs.locked_by
   \ir parts/from_locked_jobs.sql
)
select queues.queue_name
  from locked
  join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = locked.job_queue_id
 where locked.locked_by ~ '^((ot)?pool-|graphile_worker_)[0-9a-f]{18}$'
 group by queues.queue_name
having count(*) > 1
 order by queues.queue_name
 limit 100
