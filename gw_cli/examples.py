"""The examples in the help and the manual, by the words that call the command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "gw run": (
        "gw run -c postgres://localhost/app --concurrency 20",
        "gw run --processes auto --strict --log-format json",
        "gw run --once --cron",
        "gw run --shard eu=postgres://eu/app --shard us=postgres://us/app",
        "gw run --app myproject.jobs:registry --plugin myproject.plugins:audit",
    ),
    "gw add": (
        """gw add send_mail --payload '{"to": "a@example.com"}'""",
        "gw add report --run-at +1h --job-key weekly-report",
        "gw add --from jobs.jsonl",
    ),
    "gw complete": ("gw complete 17 18", "gw complete task:send_mail 'created_at:<-7d' --dry-run"),
    "gw fail": ("gw fail 17 --reason 'wrong address'", "gw fail task:old_task --yes"),
    "gw reschedule": (
        "gw reschedule 17 --run-at now",
        "gw reschedule state:scheduled queue:slow --run-at +1h --priority 5",
    ),
    "gw retry": ("gw retry 17", """gw retry state:failed 'error:"timed out"'""", "gw retry --state failed --yes"),
    "gw cancel": ("gw cancel 17 --reason 'wrong input'", "gw cancel task:export --retry"),
    "gw remove": ("gw remove weekly-report",),
    "gw pause": (
        "gw pause task:send_mail --until 14:00 --reason 'provider down'",
        "gw pause queue:billing --until +90m",
        "gw pause all",
    ),
    "gw resume": ("gw resume task:send_mail", "gw resume queue:billing all"),
    "gw limit": (
        "gw limit send_mail --running 4",
        "gw limit call_api --rate 100/s",
        "gw limit send_mail --running 2 --field tenant_id",
        "gw limit send_mail --off",
    ),
    "gw cron parse": ("gw cron parse", "gw cron parse other.crontab --json"),
    "gw cron validate": ("gw cron validate", "gw cron validate --tasks tasks crontab"),
    "gw cron next": ("gw cron next -n 20", "gw cron next --item weekly-email --after 2026-12-24T00:00:00Z"),
    "gw cron run": ("gw cron run weekly-email",),
    "gw cron list": ("gw cron list", "gw cron list --columns id,next_run"),
    "gw cron forget": ("gw cron forget weekly-email",),
    "gw list": (
        "gw list state:failed",
        "gw list 'task:send*' 'attempts:>3' -queue:slow",
        """gw list 'error:"timed out"' 'run_at:<-1h' --payload""",
        "gw list payload.user.id:42 --columns id,task,last_error --wide",
    ),
    "gw count": ("gw count state:failed", "gw count task:send_mail 'created_at:<-1h'"),
    "gw show": ("gw show 17", "gw show --job-key weekly-report"),
    "gw history": (
        "gw history task:send_mail",
        "gw history state:failed 'finished_at:-1d..now'",
        "gw history 17 --result",
        "gw history task:send_mail --count",
    ),
    "gw stats": ("gw stats --tasks", "gw stats --watch --interval 5s"),
    "gw queues": ("gw queues --locked", "gw queues -n 100 --json"),
    "gw pauses": ("gw pauses", "gw pauses --json"),
    "gw groups list": ("gw groups list", "gw groups list --columns id,task,open,failed"),
    "gw groups cancel": ("gw groups cancel 7",),
    "gw limits": ("gw limits", "gw limits --json"),
    "gw tasks": ("gw tasks", "gw tasks --exact --columns task,failed"),
    "gw tui": ("gw tui", "gw tui --filter state:failed --env production", "gw tui --demo"),
    "gw workers": ("gw workers", "gw workers --sweep-threshold 2m"),
    "gw sweep": ("gw sweep --dry-run", "gw sweep"),
    "gw unlock": ("gw unlock gw-web-1-4711-0f3a --dry-run",),
    "gw cleanup": ("gw cleanup failed-jobs --dry-run", "gw cleanup unused-tasks unused-queues --keep send_mail"),
    "gw record-others": ("gw record-others 7d", "gw record-others off"),
    "gw doctor": ("gw doctor", "gw doctor --json"),
    "gw bench": ("gw bench", "gw bench --count 100000 --concurrency 20"),
    "gw health": ("gw health",),
    "gw migrate": ("gw migrate", "gw migrate --plan", "gw migrate --sql | psql"),
    "gw config show": ("gw config show", "gw config show run"),
    "gw config schema": ("gw config schema > gw.schema.json",),
    "gw init": ("gw init", "gw init project --embedded"),
    "gw dev": ("gw dev", "gw dev --tasks project/tasks"),
    "gw completion": (
        "gw completion bash > ~/.local/share/bash-completion/completions/gw",
        'gw completion zsh > "${fpath[1]}/_gw"',
        "gw completion fish > ~/.config/fish/completions/gw.fish",
    ),
}
