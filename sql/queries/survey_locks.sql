-- How many jobs and queues each of these workers holds.
-- Our index of locked jobs is chosen for its order, whatever the statistics say.
with locked as materialized (
  select jobs.locked_by
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is not null
   order by jobs.locked_at
   limit 100000
)
select wanted.id,
       (select count(*) from locked where locked.locked_by = wanted.id),
       (select count(*) from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues where queues.locked_by = wanted.id)
  from unnest(%(worker_ids)s::text[]) with ordinality as wanted (id, place)
 order by wanted.place
