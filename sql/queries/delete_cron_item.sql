-- Forget an identifier: the next worker that has it in its crontab registers it as new, without backfill.
delete from :GRAPHILE_WORKER_SCHEMA._private_known_crontabs
 where identifier = %(identifier)s::text
returning identifier, date_part('epoch', known_since), date_part('epoch', last_execution)
