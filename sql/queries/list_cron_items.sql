-- Every crontab identifier the database knows.
select identifier, known_since, last_execution
  from :GRAPHILE_WORKER_SCHEMA._private_known_crontabs
 order by identifier
