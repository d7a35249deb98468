-- Remove the job with this key; a running one cannot be removed, but it loses its key and is not tried again.
create or replace function :GRAPHILE_WORKER_SCHEMA.remove_job(job_key text)
returns :GRAPHILE_WORKER_SCHEMA._private_jobs
language plpgsql strict set search_path = pg_catalog, pg_temp set enable_seqscan = off as $gw$
declare
  v_job :GRAPHILE_WORKER_SCHEMA._private_jobs;
  v_retired bigint[];
begin
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.key = job_key
     and (jobs.locked_at is null or jobs.locked_at < now() - interval '4 hours')
  returning * into v_job;
  if found then
    perform pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":-1}');
    return v_job;
  end if;

  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set key = null,
         attempts = jobs.max_attempts,
         updated_at = now()
   where jobs.key = job_key
  returning * into v_job;
  v_retired := array[v_job.id];
  \ir mark_retired_jobs.sql
  return v_job;
end;
$gw$;
