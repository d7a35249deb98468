-- Notify the workers; those that do not know a breaking revision stop.
select pg_notify('worker:migrate', '{"migrationNumber":' || :NUMBER || ',"breaking":' || ':BREAKING' || '}');
