-- Claim jobs of the task `:TASK` within a limit that counts each value of the field `:FIELD` of the payload separately.
--
-- The transaction has the lock of the limit, and this snapshot has the claims of all who had it before.
-- `steps` leaps from value to value, and from priority to priority, in the index of the task, and asks each for as many
-- jobs as it has room for. So a claim costs the same whatever backlog a full value has. It takes `scan_limit` steps at
-- most, and the next one goes on there.
-- A claim of some jobs waits for the disk, as in limit_spend.sql.
-- A job that has expired is claimed, so that it fails, but takes no token, because it does not start.
-- A last row without an id reports on the scan: how many values are full now, the place where the scan ended early, and
-- the seconds until a bucket has a token.
\set TASK 0
\set FIELD field
\set FLAGS jobs.flags
\set ONLYQUEUES false
with recursive
limits as materialized (
  select limits.*, limits.per_period / limits.period_seconds as tokens_per_second, clock_timestamp() as now
    from :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
   where limits.task = %(task)s::text
),
locked_jobs as materialized (
  select jobs.task_id, jobs.payload
   \ir parts/from_locked_jobs.sql
),
running as materialized (
  select counted.value, count(*)::integer as jobs
    from (
           select
             \ir parts/field_value.sql
             as value
             from locked_jobs as jobs
            where jobs.task_id = :TASK
         ) as counted
   group by counted.value
),
\set AFTER '%(after_value)s::text collate pg_catalog."C", %(after_priority)s::integer'
steps (value, priority, step) as (
  select heads.value, heads.priority, 1
    from (select) as one
    left join lateral (
           \ir parts/next_of_field.sql
         ) as heads on true
  union all
  \set AFTER 'steps.value, steps.priority'
  select heads.value, heads.priority, steps.step + 1
    from steps
    left join lateral (
           \ir parts/next_of_field.sql
         ) as heads on true
   where steps.value is not null
     and steps.step < %(scan_limit)s::bigint
),
found as materialized (
  select steps.*,
         limits.most_running
         - coalesce((select running.jobs from running where running.value = steps.value), 0) as free,
         case
           when limits.per_period is not null
           then least(
                  limits.burst,
                  coalesce(
                    (
                      select
                        \set NOW limits.now
                        \ir parts/tokens_at.sql
                        from :GRAPHILE_WORKER_SCHEMA._private_gw_buckets as buckets
                       where buckets.task = limits.task
                         and buckets.value = steps.value
                    ),
                    limits.burst
                  )
                )
         end as tokens
    from steps
   cross join limits
   where steps.value is not null
),
-- Jobs in a queue that is locked are stepped over, but no more than this many of a value.
spare as materialized (
  select case
           when exists (
                  select
                    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                   where jobs.is_available = true
                     and jobs.job_queue_id is not null
                )
           then 20
           else 0
         end as jobs
),
due as materialized (
  select first.*, found.value, least(found.free, floor(found.tokens)::integer) as room
    from found
   cross join lateral (
           select
             jobs.id,
             jobs.ctid as row,
             jobs.job_queue_id,
             jobs.priority,
             jobs.run_at,
             (
               jobs.flags is null
               or jobs.attempts > 0
               or jobs.last_error is not null
               or (
                 \ir parts/expires_at.sql
                 <= now()
               ) is not true
             ) as starts
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where
              \ir parts/of_field.sql
              and
              \ir parts/field_value.sql
              = found.value
              and jobs.priority = found.priority
              \ir parts/is_runnable.sql
\if :ONLYQUEUES
              and jobs.job_queue_id = any(array(
                    select queues.id
                      from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
                     where queues.queue_name = any(%(queue_names)s::text[])
                  ))
\endif
            order by jobs.run_at, jobs.id
            limit least(found.free, floor(found.tokens)::integer, %(limit)s::integer) + (select jobs from spare)
         ) as first
   where least(found.free, floor(found.tokens)::integer) > 0
),
open as materialized (
  select due.*,
         row_number() over (partition by due.value order by due.priority, due.run_at, due.id) as place
    from (
           select due.*,
                  row_number() over (
                    partition by due.job_queue_id order by due.priority, due.run_at, due.id
                  ) as queue_place
             from due
            where due.job_queue_id is null
               or exists (
                    select
                      from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
                     where queues.id = due.job_queue_id
                       and queues.is_available = true
                  )
         ) as due
   where due.job_queue_id is null
      or due.queue_place = 1
),
picks as materialized (
  select *
    from open
   where open.place <= open.room
   order by open.priority, open.run_at, open.id
   limit %(limit)s::bigint
),
-- What this claim leaves of each value.
left_over as materialized (
  select found.free - taken.jobs as free, found.tokens - taken.starts::float8 as tokens
    from found
   cross join lateral (
           select count(*)::integer as jobs, count(*) filter (where picks.starts) as starts
             from picks
            where picks.value = found.value
         ) as taken
),
queue_rows as materialized (
  select queues.id
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   where queues.id = any(array(select picks.job_queue_id from picks where picks.job_queue_id is not null))
     and queues.is_available = true
     for update skip locked
),
-- By address, and with conditions that fit no partial index: without statistics, the planner would read a whole index.
locked as materialized (
  select
    jobs.id,
    jobs.job_queue_id,
    jobs.priority,
    jobs.run_at,
    \ir parts/payload_bytes.sql
    as bytes
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.ctid = any(array(select picks.row from picks))
     and jobs.is_available is not false
     and
     \ir parts/field_value.sql
     = (select picks.value from picks where picks.id = jobs.id)
     and (jobs.job_queue_id is null or jobs.job_queue_id = any(array(select queue_rows.id from queue_rows)))
     \ir parts/is_runnable.sql
     for update skip locked
),
\set LOCKED locked
\set ORDER 'order by locked.priority, locked.run_at, locked.id'
\ir parts/within_bytes.sql
\ir parts/locked_queues.sql
spent as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_buckets (task, value, tokens, filled_at)
  select limits.task, taken.value, max(found.tokens) - max(taken.starts)::float8, limits.now
    from (
           select picks.value, count(*) filter (where picks.starts) as starts
             from chosen
             join picks on picks.id = chosen.id
            group by picks.value
         ) as taken
    join found on found.value = taken.value
   cross join limits
   where limits.per_period is not null
   group by limits.task, limits.now, taken.value
  on conflict (task, value) do update
    set tokens = excluded.tokens,
        filled_at = excluded.filled_at
),
\set NAME '(select queues.queue_name from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues where queues.id = jobs.job_queue_id)'
\set CHOSEN 'id from chosen'
\set COLUMN id
\ir parts/claimed.sql
union all
select null, null,
       cast(
         case when exists (select from chosen) then pg_catalog.to_json(set_config('synchronous_commit', 'on', true)) end
         as :JSON
       ),
       (select count(*)::integer from left_over where left_over.free <= 0), null,
       last.priority, null, null, null, null, null, null, null,
       last.value, null,
       (
         select min((1::float8 - left_over.tokens) / limits.tokens_per_second)
           from left_over
          cross join limits
          where left_over.tokens < 1::float8
            and (left_over.free <= 0) is not true
       )
  from (select) as one
  left join (
         select steps.value, steps.priority
           from steps
          where steps.step = %(scan_limit)s::bigint
            and steps.value is not null
       ) as last on true
