-- Add a job that was removed by its key to history, if that keeps it.
\set KEPT null::interval
with removed as (
  select %(id)s::bigint as id,
         %(attempts)s::integer as attempts,
         %(max_attempts)s::integer as max_attempts,
         %(task)s::text as task,
         %(queue_name)s::text as queue_name,
         %(key)s::text as key,
         %(last_error)s::text as last_error,
         to_timestamp(%(created_at)s::double precision) as created_at
),
recorded as (
  \ir parts/recorded_removals.sql
)
select removed.id from removed
