-- What the jobs that a job waited for came to, in the order in which it named them, as history has it; one that failed
-- permanently is in the queue, also if history keeps nothing of the attempt.
select members.job_id,
       latest.state,
       latest.error,
       latest.result::text,
       coalesce(
         (
           select jobs.locked_at is null and jobs.attempts >= jobs.max_attempts
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.id = members.job_id
         ),
         false
       )
  from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
 cross join lateral pg_catalog.unnest(waiting.after) with ordinality as members (job_id, place)
  left join lateral (
         select history.state, history.error, history.result
           from :GRAPHILE_WORKER_SCHEMA._private_gw_history as history
          where history.job_id = members.job_id
            and history.expires_at > now()
          order by history.final desc, history.finished_at desc
          limit 1
       ) as latest on true
 where waiting.job_id = %(job_id)s::bigint
 order by members.place
