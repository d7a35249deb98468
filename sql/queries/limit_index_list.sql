-- The indexes for limits by a field of this task: the name of each, whether it may be used, and whether our role may drop it.
-- With them those of tasks that are gone: the cleanup of Graphile Worker (Node.js) deletes a task without jobs, and a task
-- that is added again has another id.
select indexes.relname::text,
       index.indisvalid and index.indisready,
       pg_has_role(indexes.relowner, 'usage')
  from pg_index as index
  join pg_class as indexes on indexes.oid = index.indexrelid
  join pg_namespace as namespace on namespace.oid = indexes.relnamespace
 cross join lateral (select substring(indexes.relname::text from '^jobs_gw_field_([0-9]+)_')::integer as id) as task
 where namespace.nspname = %(schema)s::text
   and task.id is not null
   and (
         task.id = %(task_id)s::integer
         or not exists (
              select
                from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
               where tasks.id = task.id
            )
       )
 order by indexes.relname
