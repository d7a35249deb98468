-- The role from which row security hides every job; null when it shows any.
select
  \set COMMAND r
  \ir parts/role_without_rows.sql
