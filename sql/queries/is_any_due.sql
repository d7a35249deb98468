-- Return whether a job is due, of any task and queue, and whether one waits at all. An idle worker asks this at each poll
-- while jobs wait for later: it takes a sixth of the time of a claim, most of which is to set up its many parts.
-- The first job of each priority is enough, because the index has its earliest there.
with recursive
\ir parts/both_priorities.sql
waiting as (
  select since from unqueued_priorities
  union all
  select since from queued_priorities
)
select exists (select from waiting where waiting.since <= coalesce(%(now)s::timestamptz, now())),
       exists (select from waiting)
