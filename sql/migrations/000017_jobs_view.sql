-- A view is what others may read of the jobs.

\ir parts/jobs_view.sql
