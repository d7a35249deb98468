-- Adding a job no longer uses up a number of the task and queue sequences when both are known already.

\ir parts/add_jobs.sql
