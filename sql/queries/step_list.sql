-- The steps of one job: of a job in the queue, or of one that has ended and is in history.
select steps.name,
       case when %(with_value)s::boolean then steps.value::text else '' end,
       steps.finished,
       steps.attempt,
       date_part('epoch', steps.saved_at)
  from :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps
 where steps.job_id = %(job_id)s::bigint
   and case
         when steps.kept_until is not null then steps.kept_until > now()
         else exists (
                select
                  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                 where jobs.id = %(job_id)s::bigint
                   and jobs.created_at = steps.job_created_at
                   and (jobs.revision = 0 or jobs.flags ? 'gw:steps')
              )
              or exists (
                select
                  from :GRAPHILE_WORKER_SCHEMA._private_gw_history as history
                 where history.job_id = %(job_id)s::bigint
                   and history.created_at = steps.job_created_at
                   and history.expires_at > now()
              )
       end
 order by steps.saved_at, steps.name
