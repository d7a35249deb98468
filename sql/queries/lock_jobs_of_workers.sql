-- Lock the jobs and then the queues of these workers in order of their ids, as settling does.
-- The jobs are counted in a subquery of the condition, which the planner evaluates before it reads any queue. A join with
-- the count can read the queues first; finding none, it never locks the jobs, and the release that follows has a
-- snapshot from before another session gave the queue back to its worker.
with locked as materialized (
  select jobs.id, jobs.locked_by
   \ir parts/from_locked_jobs.sql
),
jobs as materialized (
  select jobs.id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(array(select locked.id from locked where locked.locked_by = any(%(worker_ids)s::text[])))
     and jobs.locked_by = any(%(worker_ids)s::text[])
   order by jobs.id
     for update
)
select queues.id
  from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
 where queues.locked_by = any(%(worker_ids)s::text[])
   and (select count(*) from jobs) >= 0
 order by queues.id
   for update of queues
