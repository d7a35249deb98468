-- Repair the add under a key: if it races with a worker or another add, no job is lost and no empty row is returned.

\ir parts/add_jobs.sql
