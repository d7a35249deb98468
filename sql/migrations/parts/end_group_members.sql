-- Take note that these jobs have ended, and add the jobs that waited for the last of them. With null, check every group that
-- was not checked for a while: its members may have been ended by workers in other languages or by SQL.
-- A member has ended when its row is gone; one that failed permanently counts unless its group holds.
-- The waiting row is locked first, and what is read afterwards is new, so of two who end the last members one adds the job.
-- Deleting the waiting row and adding its job are one transaction. If the job cannot be added, its group keeps the error
-- and is checked again; the other groups go on.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_end_members(job_ids bigint[])
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $gw$
declare
  v_ids bigint[];
  v_id bigint;
  v_waiting record;
  v_added integer := 0;
begin
  if job_ids is null then
    v_ids := array(
      select waiting.id
        from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
       where waiting.checked_at < now() - interval '45 seconds'
       order by waiting.id
         for update skip locked
    );
  else
    v_ids := array(
      select distinct edges.waiting_id
        from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
       where edges.job_id = any(job_ids)
       order by edges.waiting_id
    );
  end if;
  foreach v_id in array v_ids loop
    select waiting.on_failure, waiting.job into v_waiting
      from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
     where waiting.id = v_id
       for update;
    continue when not found;
    delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
     where edges.waiting_id = v_id
       and (job_ids is null or edges.job_id = any(job_ids))
       and not exists (
             select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.id = edges.job_id
           );
    if v_waiting.on_failure <> 'hold' then
      delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
       using :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       where edges.waiting_id = v_id
         and (job_ids is null or edges.job_id = any(job_ids))
         and jobs.id = edges.job_id
         and jobs.locked_at is null
         and jobs.attempts >= jobs.max_attempts;
      if found and v_waiting.on_failure = 'cancel' then
        delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges where edges.waiting_id = v_id;
        delete from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting where waiting.id = v_id;
        continue;
      end if;
    end if;
    if exists (select from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges where edges.waiting_id = v_id) then
      if job_ids is null then
        update :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting set checked_at = now() where waiting.id = v_id;
      end if;
      continue;
    end if;
    begin
      delete from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting where waiting.id = v_id;
      perform :GRAPHILE_WORKER_SCHEMA.add_job(
        identifier => v_waiting.job->>'task',
        payload => v_waiting.job->'payload',
        queue_name => v_waiting.job->>'queue_name',
        run_at => coalesce(
          (v_waiting.job->>'run_at')::timestamptz, now() + make_interval(secs => (v_waiting.job->>'delay')::float8)
        ),
        max_attempts => (v_waiting.job->>'max_attempts')::integer,
        job_key => v_waiting.job->>'job_key',
        priority => (v_waiting.job->>'priority')::integer,
        flags => case
          when v_waiting.job->>'flags' is not null then array(select json_array_elements_text(v_waiting.job->'flags'))
        end,
        job_key_mode => v_waiting.job->>'job_key_mode'
      );
      v_added := v_added + 1;
    exception when others then
      update :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
         set error = left(sqlerrm, 1000), checked_at = now()
       where waiting.id = v_id;
    end;
  end loop;
  return v_added;
end;
$gw$;
