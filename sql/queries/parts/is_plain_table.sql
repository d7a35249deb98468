-- Whether `relation` is a table whose columns all have types that come with PostgreSQL.
relkind = 'r'
and not exists (
      select from pg_attribute where attrelid = relation.oid and atttypid >= 16384::oid
    )
