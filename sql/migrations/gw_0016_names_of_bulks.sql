-- Look up each task and queue of a bulk once, not once for each job: 7 % less CPU time of the server for each job of a
-- session that adds again and again.

\ir parts/add_jobs.sql
