-- The rest of a claim that takes jobs without a queue only, once their priorities are known; `:FROM` says where each is read from.
queued (anything) as materialized (
  select exists (
           select
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id is not null
         )
),
unqueued as materialized (
  select due.row, null::int as job_queue_id, due.bytes
    from (select * from unqueued_levels where not (select anything from queued)) as unqueued_levels
   cross join lateral (
           \ir parts/lock_unqueued.sql
         ) as due
   limit %(limit)s
),
\set LOCKED unqueued
\set ORDER ''
\ir within_bytes.sql
claimed as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = jobs.attempts + 1,
         locked_at = now(),
         locked_by = %(worker_id)s
   where jobs.ctid = any(array(select row from chosen))
  returning
    \ir parts/claimed_columns.sql
    null::text as queue_name,
    jobs.last_error,
    date_part('epoch', jobs.locked_at) as locked_at
)
select * from claimed
union all
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
  from queued
 where queued.anything
