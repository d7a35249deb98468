-- What a selection has to know of the database: its clock, the ids of the tasks and queues named, exactly or by their
-- beginning, and whether the start of an attempt is kept when its lock is renewed.
-- Without a prefix, the tables are read by their indexes alone.
select
  pg_catalog.now(),
  (select coalesce(pg_catalog.json_object_agg(named.name, named.id)::text, '{}')
     from (
       select tasks.identifier as name, tasks.id
         from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
        where tasks.identifier = any(%(tasks)s::text[])
       union
       select tasks.identifier, tasks.id
         from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
        where pg_catalog.cardinality(%(task_prefixes)s::text[]) > 0
          and exists (select from pg_catalog.unnest(%(task_prefixes)s::text[]) as prefix where pg_catalog.starts_with(tasks.identifier, prefix))
     ) as named),
  (select coalesce(pg_catalog.json_object_agg(named.name, named.id)::text, '{}')
     from (
       select queues.queue_name as name, queues.id
         from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
        where queues.queue_name = any(%(queues)s::text[])
       union
       select queues.queue_name, queues.id
         from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
        where pg_catalog.cardinality(%(queue_prefixes)s::text[]) > 0
          and exists (select from pg_catalog.unnest(%(queue_prefixes)s::text[]) as prefix where pg_catalog.starts_with(queues.queue_name, prefix))
     ) as named),
  pg_catalog.to_regclass(%(renewed_table)s::text) is not null
