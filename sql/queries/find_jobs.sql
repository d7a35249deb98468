-- Jobs by their ids or a key, with the database's clock; the payload only when asked for.
select
  \set JOB jobs
  \set PAYLOAD 'case when %(with_payload)s::boolean then jobs.payload::text else '' end'
  \ir parts/job_columns.sql
  ,
  \ir parts/state_of_job.sql
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
where jobs.id = any(
        array(
          select pg_catalog.unnest(%(ids)s::bigint[])
          union
          select keyed.id
            from :GRAPHILE_WORKER_SCHEMA._private_jobs as keyed
           where keyed.key = %(key)s::text
        )
      )
order by jobs.id
