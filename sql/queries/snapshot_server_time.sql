-- The seconds that the server has worked on this pipeline.
-- The pipeline is one transaction that began with its first statement, so the network is not included.
select date_part('epoch', clock_timestamp() - now())
