-- Delete jobs that these claims ran to their end, and release the queues they were the last of.
-- A job whose lock was released, and that was perhaps claimed again, is left alone.
with
\set RETURNED jobs.id
\ir parts/completed.sql
,
\set SETTLED completed
\ir parts/released_queues.sql
\ir parts/settled_ids.sql
