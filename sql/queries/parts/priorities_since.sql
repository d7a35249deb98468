-- The priorities of waiting jobs with or without a queue, each with the time to read it from: what the caller knows of
-- its beginning, else none. Found by leaping from one to the next in an index.
:PRIORITIES (priority, since) as (
  select coalesce(fresh.priority, known.priority) as priority,
         case when fresh.priority is null then to_timestamp(known.since) else '-infinity' end as since
    from (select) as one
    left join lateral (
           select head.priority, head.since
             from unnest(%(:PRIORITIES)s::int[], %(:SINCE)s::double precision[]) as head (priority, since)
            where head.priority > -32769
            order by head.priority
            limit 1
         ) as known on true
    left join lateral (
           select jobs.priority::int
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id :QUEUE
              and jobs.priority > -32769
              and jobs.priority < coalesce(known.priority, 32768)
            order by jobs.priority
            limit 1
         ) as fresh on true
  union all
  select step.priority, step.since
    from :PRIORITIES
   cross join lateral (
           select coalesce(fresh.priority, known.priority) as priority,
                  case when fresh.priority is null then to_timestamp(known.since) else '-infinity' end as since
             from (select) as one
             left join lateral (
                    select head.priority, head.since
                      from unnest(%(:PRIORITIES)s::int[], %(:SINCE)s::double precision[]) as head (priority, since)
                     where head.priority > :PRIORITIES.priority
                     order by head.priority
                     limit 1
                  ) as known on true
             left join lateral (
                    select jobs.priority::int
                      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                     where jobs.is_available = true
                       and jobs.job_queue_id :QUEUE
                       and jobs.priority > :PRIORITIES.priority
                       and jobs.priority < coalesce(known.priority, 32768)
                     order by jobs.priority
                     limit 1
                  ) as fresh on true
         ) as step
   where :PRIORITIES.priority is not null
),
