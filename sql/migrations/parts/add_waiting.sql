-- Add a job that waits until these jobs have ended, and return it. Its run_at counts from then.
-- The jobs' rows are locked first: one that ends at the same time has ended before, or ends after the edge is visible.
-- A flag of these jobs lets the worker that settles one know that another job waits.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_add_waiting(job json, after_ids bigint[], on_failure text)
returns :GRAPHILE_WORKER_SCHEMA._private_jobs
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $gw$
declare
  v_open bigint[];
  v_job :GRAPHILE_WORKER_SCHEMA._private_jobs;
begin
  v_open := array(
    select locked.id
      from (
        select jobs.id
          from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
         where jobs.id = any(after_ids)
         order by jobs.id
           for no key update
      ) as locked
  );
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set flags = coalesce(jobs.flags, '{}') || '{"gw:group": true}'
   where jobs.id = any(v_open)
     and not coalesce(jobs.flags, '{}') ? 'gw:group';

  v_job := :GRAPHILE_WORKER_SCHEMA.add_job(
    identifier => job->>'task',
    payload => job->'payload',
    queue_name => job->>'queue_name',
    run_at => 'infinity',
    max_attempts => (job->>'max_attempts')::integer,
    job_key => job->>'job_key',
    priority => (job->>'priority')::integer,
    flags => case
      when job->>'flags' is not null then array(select json_array_elements_text(job->'flags'))
    end
  );
  if v_job.id = any(after_ids) or exists (
       with recursive earlier (id) as (
         select unnest(v_open)
          union
         select edges.job_id
           from earlier
           join :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges on edges.waiting_id = earlier.id
          where exists (
                  select from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as own where own.job_id = v_job.id
                )
       )
       select from earlier where earlier.id = v_job.id
     ) then
    raise invalid_parameter_value
      using message = format('job %s cannot wait for itself, not even through other jobs', v_job.id);
  end if;

  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges where edges.waiting_id = v_job.id;
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting (
    job_id, after, on_failure, run_at, delay_seconds, released_at
  )
  values (
    v_job.id,
    after_ids,
    _private_gw_add_waiting.on_failure,
    (job->>'run_at')::timestamptz,
    (job->>'delay')::float8,
    case when v_open = '{}' then now() end
  )
  on conflict on constraint gw_waiting_pkey do update
     set after = excluded.after,
         on_failure = excluded.on_failure,
         run_at = excluded.run_at,
         delay_seconds = excluded.delay_seconds,
         checked_at = now(),
         released_at = excluded.released_at;
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_edges (job_id, waiting_id)
  select unnest(v_open), v_job.id;
  if v_open = '{}' then
    update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       set run_at = coalesce((job->>'run_at')::timestamptz, now() + make_interval(secs => (job->>'delay')::float8), now())
     where jobs.id = v_job.id
    returning * into v_job;
    return v_job;
  end if;
  -- One that has failed may end the wait. A role that adds jobs may do nothing about it; then a worker does.
  if exists (
       select
         from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
        where jobs.id = any(v_open)
          and jobs.locked_at is null
          and jobs.attempts >= jobs.max_attempts
     ) then
    begin
      perform :GRAPHILE_WORKER_SCHEMA._private_gw_end_members(v_open, waiting_ids => array[v_job.id]);
    exception when insufficient_privilege then
      return v_job;
    end;
    select jobs.* into v_job from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.id = v_job.id
     union all
    select v_job.*
     limit 1;
  end if;
  return v_job;
end;
$gw$;
