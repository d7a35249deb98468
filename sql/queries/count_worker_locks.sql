-- How many jobs and queues each of these workers holds.
with locked as materialized (
  select jobs.locked_by
   \ir parts/from_locked_jobs.sql
)
select wanted.id,
       (select count(*) from locked where locked.locked_by = wanted.id),
       (select count(*) from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues where queues.locked_by = wanted.id)
  from pg_catalog.unnest(%(worker_ids)s::text[]) with ordinality as wanted (id, place)
 order by wanted.place
