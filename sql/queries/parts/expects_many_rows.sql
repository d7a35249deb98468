-- Makes the planner expect 1,000 outcomes. Of arrays it expects ten, and would compare each outcome with each job.
pg_catalog.generate_series(1, pg_catalog.cardinality(%(ids)s::bigint[]))
