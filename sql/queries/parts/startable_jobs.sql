-- How many jobs of a task may start now by its bucket, `buckets`, which fills at the rate of its limit; null without one.
case
  when limits.per_period is not null
  then least(
         limits.burst,
         coalesce(
           buckets.tokens
             + date_part('epoch', clock.now - buckets.filled_at) * limits.per_period / limits.period_seconds,
           limits.burst
         )
       )
end
