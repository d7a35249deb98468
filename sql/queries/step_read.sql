-- What the steps of a job have kept for its next attempts.
select steps.name, steps.value::text, steps.finished
  from :GRAPHILE_WORKER_SCHEMA._private_gw_steps as steps
 where steps.job_id = %(job_id)s::bigint
   and steps.job_created_at = %(created_at)s::timestamptz
