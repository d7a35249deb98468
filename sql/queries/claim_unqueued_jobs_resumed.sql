-- Claim jobs that have no named queue as claim_unqueued_jobs.sql does, but go on where the claim before has stopped.
--
-- The index entries of what was claimed and done stand before those of the jobs that wait, until vacuum removes them.
-- Reading past them took a third of each claim's time after some 100,000 jobs. Priorities of which nothing is known, more
-- urgent ones among them, are read from their beginning.
with recursive
\set LEVELS unqueued_levels
\set SINCE unqueued_since
\set QUEUE 'is null'
\ir parts/priorities_since.sql
\set FROM 'and jobs.run_at >= unqueued_levels.since'
\ir parts/claim_unqueued.sql
