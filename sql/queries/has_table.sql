-- Whether a table exists.
select to_regclass(%(table)s) is not null
