-- Delete jobs manually as if they had succeeded; one that a worker locks is skipped until its lock is four hours old.
create or replace function :GRAPHILE_WORKER_SCHEMA.complete_jobs(job_ids bigint[])
returns setof :GRAPHILE_WORKER_SCHEMA._private_jobs
language sql set search_path = pg_catalog, pg_temp as $gw$
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(job_ids)
     and (jobs.locked_at is null or jobs.locked_at < now() - interval '4 hours')
  returning jobs.*;
$gw$;
