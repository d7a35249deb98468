-- Forget an identifier: the next worker that has it in its crontab meets it as new, and makes up for nothing.
delete from :GRAPHILE_WORKER_SCHEMA._private_known_crontabs
 where identifier = %(identifier)s
returning identifier, known_since, last_execution
