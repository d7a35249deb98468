-- What operators did, the latest first, from a place on; to one job, or to anything.
-- An array is compared, so that the index on `job_ids` finds the rows of a job.
select
  actions.id,
  date_part('epoch', actions.at),
  actions.action,
  actions.by,
  actions.role,
  actions.program,
  actions.address,
  actions.job_ids,
  actions.targets,
  actions.details::text
from :GRAPHILE_WORKER_SCHEMA._private_gw_actions as actions
where (%(job_id)s::bigint is null or actions.job_ids operator(pg_catalog.@>) array[%(job_id)s::bigint])
  and (%(after)s::bigint is null or actions.id < %(after)s::bigint)
  and actions.expires_at > now()
order by actions.id desc
limit %(limit)s::bigint
