-- The chosen jobs, claimed by the address of their rows, which saves a search of the primary key for each.
-- A row that another session changed between snapshot and lock is locked at its new address, which this statement does
-- not see. Such rows (`moved`) are claimed by id: that follows them to the version that was locked.
claimed as (
  \set ROWS 'jobs.ctid = any(array(select row from chosen))'
  \ir lock_chosen.sql
),
moved as (
  \set ROWS 'jobs.id = any(array(select id from chosen where id not in (select id from claimed))) and (select count(*) from claimed) < (select count(*) from chosen)'
  \ir lock_chosen.sql
)
select * from claimed
union all
select * from moved
