-- The workers among the first `most` locked jobs: the number of jobs, and the age of the latest lock in seconds.
-- This needs gw's index of locked jobs. A flag counts as in list_worker_locks.sql. `?|` comes first because it is
-- cheaper than expanding all flags, which few jobs need.
select
  held.locked_by,
  count(*),
  date_part('epoch', now() - max(held.locked_at)),
  bool_or(held.flags ?| %(resilient_flags)s::text[] and exists (
    select from jsonb_each(case when jsonb_typeof(held.flags) = 'object' then held.flags end) as flag
     where flag.key = any(%(resilient_flags)s::text[])
       and flag.value not in ('false', 'null', '0', '""')
  ))
from (
  select jobs.locked_by, jobs.locked_at, jobs.flags
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is not null
   order by jobs.locked_at
   limit %(most)s::bigint
) as held
group by held.locked_by
order by held.locked_by
