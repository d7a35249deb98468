-- Every crontab identifier the database knows.
select identifier, date_part('epoch', known_since), date_part('epoch', last_execution)
  from :GRAPHILE_WORKER_SCHEMA._private_known_crontabs
 order by identifier
