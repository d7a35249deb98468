"""Build schedules in Python, and parse crontabs."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.cron.crontab import parse_crontab as parse_crontab, read_crontab as read_crontab
    from gw_core.domain.cron.schedule import (
        Schedule as Schedule,
        daily_at as daily_at,
        every_minute as every_minute,
        every_n_minutes as every_n_minutes,
        hourly_at as hourly_at,
        monthly_on as monthly_on,
        weekly_on as weekly_on,
        yearly_on as yearly_on,
    )
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.cron.crontab: parse_crontab read_crontab
        gw_core.domain.cron.schedule: Schedule daily_at every_minute every_n_minutes hourly_at monthly_on weekly_on
        gw_core.domain.cron.schedule: yearly_on
        """,
    )
