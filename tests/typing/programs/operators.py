"""A program of operators: selections, limits, pauses, history."""

from datetime import timedelta

from gw_core import Client, JobState, Selection, cron_item
from gw_core.crontab import daily_at

client = Client("postgres:///shop")

failed = client.jobs.count(Selection.of(state=JobState.FAILED, task="mail"))
print(failed.jobs, client.jobs.retry("state:failed task:mail").ids)
for attempt in client.history.list("state:completed", limit=10).attempts:
    print(attempt.job_id, attempt.finished_at.isoformat())
client.limits.set("mail", running=4, per_period=100, period=timedelta(minutes=1))
client.pauses.pause("queue:mail", until=timedelta(hours=1), reason="the provider is down")
print(client.counts().oldest_due_at, client.workers.list(), client.doctor.findings())
cron_item(daily_at(8), "report", fill=timedelta(hours=4), tz="Europe/Paris")

Selection.of(sate="failed")  # wrong
client.jobs.retry(state="failed")  # wrong
client.limits.set("mail", runing=4)  # wrong
client.pauses.pause("queue:mail", until="tomorrow")  # wrong
print(client.history.list(after=7).attempt)  # wrong
client.groups.cancel("7")  # wrong
cron_item(8, "report")  # wrong
cron_item(daily_at(8), "report", fill="4h")  # wrong
print(client.counts().redy)  # wrong
