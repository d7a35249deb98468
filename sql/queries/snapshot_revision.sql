-- The newest revision of the shared line; on its own, since a role may see the jobs and not the ledger.
select max(ledger.id) from :GRAPHILE_WORKER_SCHEMA.migrations as ledger
