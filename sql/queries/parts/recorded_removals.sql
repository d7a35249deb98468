-- Add deleted jobs, `removed`, to history as the trigger of `gw record-others` does: for `:KEPT` or, if that is null, as
-- long as history keeps this job or, if it never ran, its task. A job of which history knows neither is not recorded.
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_history (
  job_id, attempt, max_attempts, task, queue_name, key, state, final, error, created_at, finished_at, expires_at
)
select removed.id,
       removed.attempts,
       removed.max_attempts,
       removed.task,
       removed.queue_name,
       removed.key,
       'removed',
       true,
       removed.last_error,
       removed.created_at,
       now(),
       now() + removed.period
  from (
    select removed.*,
           coalesce(
             :KEPT,
             (
               select latest.expires_at - latest.finished_at
                 from :GRAPHILE_WORKER_SCHEMA._private_gw_history as latest
                where latest.job_id = removed.id
                order by latest.finished_at desc
                limit 1
             ),
             (
               select latest.expires_at - latest.finished_at
                 from :GRAPHILE_WORKER_SCHEMA._private_gw_history as latest
                where latest.task = removed.task
                order by latest.finished_at desc
                limit 1
             )
           ) as period
      from removed
  ) as removed
 where removed.period is not null
