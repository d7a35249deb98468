-- Make sure the task and the queue of a job that was deleted exist; only a missing name uses up a number.
with task as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_tasks (identifier)
  select %(task)s::text
   where not exists (
           select from :GRAPHILE_WORKER_SCHEMA._private_tasks as known where known.identifier = %(task)s::text
         )
      on conflict (identifier) do nothing
)
insert into :GRAPHILE_WORKER_SCHEMA._private_job_queues (queue_name)
select %(queue)s::text
 where %(queue)s::text is not null
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_job_queues as known where known.queue_name = %(queue)s::text
       )
    on conflict (queue_name) do nothing
returning id
