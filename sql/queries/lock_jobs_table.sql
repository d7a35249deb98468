-- Take the lock that changing jobs needs, before anything is decided about them.
-- While another session locks the table, a statement that reads heartbeats first and jobs second would act on heartbeats
-- that are as old as its wait for the table.
lock table :GRAPHILE_WORKER_SCHEMA._private_jobs in row exclusive mode
