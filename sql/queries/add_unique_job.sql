-- Add one job that is unique for a time, or return the one that is there, or was; the last column: whether it was added.
-- A job that another session added since this snapshot was updated in another transaction, and one that this transaction
-- had added is in the snapshot. The task is part of what is unique, and the queue is not.
-- With `:EXPIRES` it expires unless it starts in time.
\set EXPIRES false
\set TASK '%(identifier)s::text'
\set QUEUE 'case when job.task_id is null or job.job_queue_id is not null then coalesce(stored.queue_name, %(queue_name)s::text) end'
\set JOB '%(job)s::text::json'
with
\ir parts/given_job.sql
added as materialized (
  select job.*
    from :GRAPHILE_WORKER_SCHEMA._private_gw_add_unique(
           :JOB, %(unique_key)s::text, %(period_seconds)s::double precision
         ) as job
)
\if :EXPIRES
,
\ir parts/listed_expiries.sql
\endif
select
  \ir parts/added_job.sql
  ,
  job.updated_at = now()
  and not exists (
        select
          from :GRAPHILE_WORKER_SCHEMA._private_gw_unique as earlier
         where earlier.key = %(unique_key)s::text
           and earlier.job_id = job.id
           and earlier.expires_at > clock_timestamp()
      )
from added as job
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as stored on stored.id = job.job_queue_id
