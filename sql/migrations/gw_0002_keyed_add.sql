-- Repair the add under a key: if it races with a worker or another add, no job is lost and no empty row is returned.
-- What it retires, and what `remove_job` retires, no other program brings back.

\ir parts/add_jobs.sql
\ir parts/remove_job.sql
