-- Take note that these jobs have ended, and let the jobs go on that waited for the last of them. With null, check every
-- waiting job that was not checked for a while: what it waits for may have been ended by workers in other languages or by
-- SQL. `dropped` are waiting jobs to delete, for a `reason`; `waiting_ids` are to be checked as well.
-- A job has ended when its row is gone; `on_failure` of the job that waits decides about one that failed permanently. A
-- dropped job never ends: jobs that wait for it are dropped too, unless they run on failure.
-- A job that was added again under its key, or rescheduled by SQL, waits no longer: it is not dropped.
-- Dropped jobs become rows of history as other removed jobs do. Their tasks may never have run: `kept_tasks` are those
-- that the worker keeps, and `kept_seconds` for how long. The reason is written to the job's row, because the trigger of
-- `gw record-others` reads it there. A role that may not write history drops jobs without a record.
-- Jobs are looked up one by one: with a join, the planner could read their whole table. Without statistics, it would
-- also do so for some hundred ids, hence `enable_seqscan`. Edges are looked up by the jobs that ended: for one that
-- waits for 10,000, the planner would compare all its edges with each of them.
-- The row of a waiting job is locked first, and what is read afterwards is new, so of two who end the last jobs one lets
-- the waiting job go on.
create or replace function :GRAPHILE_WORKER_SCHEMA._private_gw_end_members(
  job_ids bigint[],
  dropped bigint[] default '{}',
  waiting_ids bigint[] default '{}',
  reason text default 'cancelled',
  kept_tasks text[] default '{}',
  kept_seconds double precision[] default '{}'
)
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $gw$
declare
  v_ended bigint[] := job_ids;
  v_dropped bigint[] := dropped;
  v_ids bigint[] := waiting_ids;
  v_next bigint[];
  v_checked bigint[];
  v_id bigint;
  v_waiting record;
  v_failed_id bigint;
  v_reason text;
  v_released integer := 0;
begin
  if job_ids is null then
    with gone as (
      delete from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
       where (
               select jobs.id from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.id = waiting.job_id
             ) is null
      returning waiting.job_id
    )
    delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
     using gone
     where edges.waiting_id = gone.job_id;
    v_ids := array(
      select waiting.job_id
        from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
       where waiting.released_at is null
         and waiting.checked_at < now() - interval '45 seconds'
       order by waiting.job_id
         for update skip locked
    );
  end if;
  if v_dropped <> '{}' then
    update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       set last_error = reason
     where jobs.id = any(v_dropped)
       and jobs.run_at = 'infinity'
       and jobs.locked_at is null;
  end if;
  loop
    if v_dropped <> '{}' then
      begin
        with removed as (
          select jobs.*, tasks.identifier as task, queues.queue_name
            from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
            left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
           where jobs.id = any(v_dropped)
             and jobs.run_at = 'infinity'
             and jobs.locked_at is null
             and not exists (
                   select
                     from pg_trigger as triggers
                    where triggers.tgrelid = jobs.tableoid
                      and triggers.tgname = '_private_gw_record_others'
                 )
        )
        \set KEPT '(select make_interval(secs => kept.seconds) from unnest(kept_tasks, kept_seconds) as kept (task, seconds) where kept.task = removed.task)'
        \ir ../../queries/parts/recorded_removals.sql
        ;
      exception when insufficient_privilege then
        null;
      end;
      delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
       where jobs.id = any(v_dropped)
         and jobs.run_at = 'infinity'
         and jobs.locked_at is null;
      delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges where edges.waiting_id = any(v_dropped);
      delete from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting where waiting.job_id = any(v_dropped);
    end if;
    if v_ended is not null then
      v_ids := array(
        select edges.waiting_id
          from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
         where edges.job_id = any(v_ended || v_dropped)
         union
        select unnest(v_ids)
         order by 1
      );
      delete from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
       where waiting.job_id = any(v_ended)
         and waiting.released_at is not null
         and (
               select jobs.id from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.id = waiting.job_id
             ) is null;
    end if;
    v_next := '{}';
    foreach v_id in array v_ids loop
      select waiting.on_failure, waiting.run_at, waiting.delay_seconds into v_waiting
        from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
       where waiting.job_id = v_id
         and waiting.released_at is null
         for update;
      continue when not found;
      if (select jobs.run_at from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.id = v_id) < 'infinity' then
        delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges where edges.waiting_id = v_id;
        update :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
           set released_at = now()
         where waiting.job_id = v_id;
        continue;
      end if;
      select 'cancelled because job ' || min(edges.job_id)::text || ' was cancelled' into v_reason
        from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
       where edges.waiting_id = v_id
         and edges.job_id = any(v_dropped)
         and v_waiting.on_failure <> 'run';
      v_checked := v_ended || v_dropped;
      if v_ended is null then
        v_checked := array(
          select edges.job_id from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges where edges.waiting_id = v_id
        );
      end if;
      delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
       where (edges.job_id, edges.waiting_id) in (select unnest(v_checked), v_id)
         and (
               select jobs.id from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.id = edges.job_id
             ) is null;
      if v_waiting.on_failure <> 'hold' then
        with failed as (
          delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
           where (edges.job_id, edges.waiting_id) in (select unnest(v_checked), v_id)
             and (
                   select jobs.locked_at is null and jobs.attempts >= jobs.max_attempts
                     from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                    where jobs.id = edges.job_id
                 )
          returning edges.job_id
        )
        select min(failed.job_id) into v_failed_id from failed;
        if v_waiting.on_failure = 'cancel' then
          v_reason := coalesce(v_reason, 'cancelled because job ' || v_failed_id::text || ' failed');
        end if;
      end if;
      if v_reason is not null then
        update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
           set last_error = v_reason
         where jobs.id = v_id
           and jobs.run_at = 'infinity'
           and jobs.locked_at is null;
        if found then
          v_next := v_next || v_id;
        end if;
      elsif exists (select from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges where edges.waiting_id = v_id) then
        if v_ended is null then
          update :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
             set checked_at = now()
           where waiting.job_id = v_id;
        end if;
      else
        v_released := v_released + 1;
        update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
           set run_at = coalesce(v_waiting.run_at, now() + make_interval(secs => v_waiting.delay_seconds), now())
         where jobs.id = v_id
           and jobs.run_at = 'infinity';
        update :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
           set released_at = now()
         where waiting.job_id = v_id;
      end if;
    end loop;
    exit when v_next = '{}';
    v_dropped := v_next;
    v_ended := '{}';
    v_ids := '{}';
  end loop;
  if v_released > 0 then
    perform pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":' || v_released::text || '}');
  end if;
  return v_released;
end;
$gw$;
