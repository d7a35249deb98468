-- How many jobs and queues each of these workers holds.
select wanted.id,
       (select count(*) from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.locked_by = wanted.id),
       (select count(*) from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues where queues.locked_by = wanted.id)
  from unnest(%(worker_ids)s::text[]) with ordinality as wanted (id, place)
 order by wanted.place
