-- Make sure the tasks exist and answer their ids; only missing ones are inserted, since every try costs a number of the
-- identity sequence.
with missing as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_tasks (identifier)
  select wanted.identifier
    from pg_catalog.unnest(%(identifiers)s::text[]) as wanted (identifier)
   where not exists (
           select from :GRAPHILE_WORKER_SCHEMA._private_tasks as known where known.identifier = wanted.identifier
         )
   order by wanted.identifier
      on conflict (identifier) do nothing
  returning id, identifier
)
select id, identifier from missing
union all
select tasks.id, tasks.identifier
  from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
 where tasks.identifier = any(%(identifiers)s::text[])
