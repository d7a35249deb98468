-- The priorities of waiting jobs without a queue and of those in one, for statements that know none before.
\set KNOWN null::smallint
\set BELOW ''
\set PRIORITIES unqueued_priorities
\set AMONG 'and jobs.job_queue_id is null'
\ir parts/priorities.sql
\set PRIORITIES queued_priorities
\set AMONG 'and jobs.job_queue_id is not null'
\ir parts/priorities.sql
