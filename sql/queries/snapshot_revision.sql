-- The newest revision of the schema. A statement of its own, because a role may see the jobs and not the ledger.
select max(ledger.id) from :GRAPHILE_WORKER_SCHEMA.migrations as ledger
