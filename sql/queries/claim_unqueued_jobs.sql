-- Claim jobs that have no named queue, provided that no job in a queue is waiting; a last row without an id says that one is.
--
-- The whole claim has some thirty parts, and making them ready takes longer than finding one job. Where nobody uses named
-- queues this takes half of that time, which is what a job waits for that is added to an empty queue. It claims nothing
-- when there are queued jobs, which may be more urgent: then claim_jobs.sql has to compare them. The parts that both have
-- are the same.
with recursive
\set LEVELS unqueued_levels
\set QUEUE 'is null'
\ir parts/priorities.sql
\set FROM ''
\ir parts/claim_unqueued.sql
