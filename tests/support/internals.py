"""Internal parts of gw_core that several tests use: each is imported here once, so a move changes one line."""

from __future__ import annotations

from gw_core.domain import supervision as supervision
from gw_core.domain.claim import (
    RENEWAL_STEP as RENEWAL_STEP,
    is_same_claim as is_same_claim,
    queue_locks as queue_locks,
)
from gw_core.domain.history import Keep as Keep
from gw_core.domain.plugins import Interceptors as Interceptors, RunTask as RunTask
from gw_core.domain.recycle_limits import MEGABYTE as MEGABYTE, RecycleLimits as RecycleLimits
from gw_core.maintenance.cron_scheduler import (
    CATCH_UP_LIMIT as CATCH_UP_LIMIT,
    MAX_REST as MAX_REST,
    ItemSource as ItemSource,
    Scheduler as Scheduler,
)
from gw_core.maintenance.probe_server import (
    MAX_CLIENTS as MAX_CLIENTS,
    MAX_REQUEST_HEAD as MAX_REQUEST_HEAD,
    HttpResponse as HttpResponse,
    WebServer as WebServer,
    is_known_host as is_known_host,
    said as said,
)
from gw_core.maintenance.recycling import memory_in_use as memory_in_use
from gw_core.maintenance.sweeper import Sweep as Sweep, Sweeper as Sweeper
from gw_core.postgres import (
    cleanup as cleanup,
    database as database,
    job_queries as job_queries,
    job_results as job_results,
    migrations as migrations,
    notifications as notifications,
    permissions as permissions,
    read_only as read_only,
    schema_state as schema_state,
    snapshots as snapshots,
    worker_store as worker_store,
)
from gw_core.postgres.add_calls import BULK as BULK
from gw_core.postgres.claims import (
    CLAIM_PLAN as CLAIM_PLAN,
    CLAIMS_WITH_QUEUES as CLAIMS_WITH_QUEUES,
    MAX_MARGIN as MAX_MARGIN,
    MAX_SKIPPING_SECONDS as MAX_SKIPPING_SECONDS,
    SHARE as SHARE,
    SLOW_ONES as SLOW_ONES,
    SkipAhead as SkipAhead,
)
from gw_core.postgres.connections import ConnectionPool as ConnectionPool, SharedConnection as SharedConnection
from gw_core.postgres.database import (
    SEARCH_PATH as SEARCH_PATH,
    TASK_ROLE as TASK_ROLE,
    Connection as Connection,
    QueueConnection as QueueConnection,
    is_ambiguous as is_ambiguous,
)
from gw_core.postgres.job_store import SETTLE_PLAN as SETTLE_PLAN, JobStore as JobStore
from gw_core.postgres.migrations import (
    SchemaState as SchemaState,
    SchemaStatus as SchemaStatus,
    check as check,
    migrate as migrate,
    plan as plan,
    script as script,
)
from gw_core.postgres.statements import (
    numbered_query as numbered_query,
    query as query,
    sql_folder as sql_folder,
    sql_text as sql_text,
)
from gw_core.processes.process import (
    MAX_BUFFERED_BYTES as MAX_BUFFERED_BYTES,
    WholeLines as WholeLines,
    WorkerProcess as WorkerProcess,
)
from gw_core.runner import BREAKING_MIGRATION_EXIT_CODE as BREAKING_MIGRATION_EXIT_CODE, RunnerOptions as RunnerOptions
from gw_core.selection import (
    EVERYTHING as EVERYTHING,
    HISTORY_TERMS as HISTORY_TERMS,
    TERMS as TERMS,
    Cost as Cost,
    Resolved as Resolved,
    Which as Which,
    parse as parse,
    suggest as suggest,
)
from gw_core.worker import (
    claimer as claimer,
    listener as listener,
    pool as pool,
    settler as settler,
    timeouts as timeouts,
)
from gw_core.worker.handoff import Handoff as Handoff, QueueBatch as QueueBatch
from gw_core.worker.settler import MAX_RECONNECT_DELAY as MAX_RECONNECT_DELAY, NO_DELAY as NO_DELAY, Settler as Settler
