-- Repair the add under a key: no job is lost and no empty row answered when it races with a worker or another add.

\ir parts/add_jobs.sql
\ir parts/add_job.sql
