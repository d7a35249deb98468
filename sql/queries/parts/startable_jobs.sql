-- How many jobs of a task may start now by its bucket, `buckets`, which fills at the rate of its limit; null without one.
\set NOW clock.now
case
  when limits.per_period is not null
  then least(
         limits.burst,
         coalesce(
           \ir parts/tokens_at.sql
           ,
           limits.burst
         )
       )
end
