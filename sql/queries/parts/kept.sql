-- What history keeps of each outcome: values that only the worker knows, and for how long.
-- The row does not say which attempt it was: giving up, and removing a running job, use up all attempts.
kept as (
  select *
    from unnest(
           %(ids)s::bigint[],
           %(tasks)s::text[],
           %(queue_names)s::text[],
           %(attempt_numbers)s::int[],
           %(started_ats)s::timestamptz[],
           %(keep_seconds)s::double precision[],
           %(keeps_payload)s::boolean[],
           %(is_awaited)s::boolean[]
         ) as kept (id, task, queue_name, attempt, started_at, keep_seconds, keeps_payload, is_awaited)
),
