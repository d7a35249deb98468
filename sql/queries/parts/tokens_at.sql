-- The tokens of a bucket, `buckets`, at the time `:NOW`: it fills at the rate of its limit.
-- A time in the future comes from a server's clock that was set back, or from the server before a failover. Then one job may
-- start, and its claim stores the current time: waiting would stop the task, and a full bucket would exceed the rate.
case
  when buckets.filled_at > :NOW + interval '1 second'
  then 1::float8
  else buckets.tokens + date_part('epoch', :NOW - buckets.filled_at) * limits.per_period / limits.period_seconds
end
