-- Every task the database knows.
select tasks.id, tasks.identifier
from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
order by tasks.identifier
limit %(most)s::bigint
