//! The worker of graphile_worker_rs that the tests run beside gw.
//! It takes one request as JSON, and prints its answer as JSON in the last line.

use std::error::Error;
use std::time::Duration;

use graphile_worker::{
    parse_crontab, BatchTaskHandler, Crontab, IntoBatchTaskHandlerResult, IntoTaskHandlerResult, JobDefinition,
    JobKeyMode, JobSpec, LocalQueueConfig, SweepStaleWorkersOptions, TaskHandler, WorkerContext, WorkerOptions,
    WorkerRecoveryConfig, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::PgPool;

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Deserialize)]
struct Request {
    url: String,
    #[serde(default = "usual_schema")]
    schema: String,
    action: Action,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Migrate,
    Run(Settings),
    RunOnce(Settings),
    Add(Added),
    Remove {
        job_key: String,
    },
    Sweep {
        threshold_ms: u64,
    },
    /// Which items a crontab has, and at which of these times each of them is due.
    Crontab {
        text: String,
        times: Vec<chrono::NaiveDateTime>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    tasks: Vec<String>,
    #[serde(default = "one")]
    concurrency: usize,
    #[serde(default = "a_second")]
    poll_ms: u64,
    #[serde(default = "five_seconds")]
    grace_ms: u64,
    crontab: Option<String>,
    local_queue: Option<usize>,
    recovery: Option<Recovery>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recovery {
    heartbeat_ms: u64,
    sweep_ms: u64,
    threshold_ms: u64,
    delay_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Added {
    task: String,
    payload: Value,
    queue_name: Option<String>,
    job_key: Option<String>,
    job_key_mode: Option<String>,
    run_at: Option<chrono::DateTime<chrono::Utc>>,
}

fn usual_schema() -> String {
    "graphile_worker".to_string()
}

fn one() -> usize {
    1
}

fn a_second() -> u64 {
    1000
}

fn five_seconds() -> u64 {
    5000
}

// -- what tasks do: they write into the ledger of the tests, and wait at its gate --------------------------------------

async fn run_job(payload: &Value, ctx: &WorkerContext) -> Result<(), String> {
    let in_words = |error: sqlx::Error| error.to_string();
    let pool = ctx.pg_pool();
    let (entry,): (i32,) = sqlx::query_as("select public.job_begins($1, 'rust')")
        .bind(*ctx.job().id())
        .fetch_one(pool)
        .await
        .map_err(in_words)?;
    sqlx::query("select public.pass_gate()")
        .execute(pool)
        .await
        .map_err(in_words)?;
    if payload["fails"] == json!(true) {
        return Err("as the test asked".to_string());
    }
    sqlx::query("select public.job_ends($1)")
        .bind(entry)
        .execute(pool)
        .await
        .map_err(in_words)?;
    Ok(())
}

macro_rules! task {
    ($name:ident, $identifier:literal) => {
        #[derive(Serialize, Deserialize)]
        #[serde(transparent)]
        struct $name(Value);

        impl TaskHandler for $name {
            const IDENTIFIER: &'static str = $identifier;

            async fn run(self, ctx: WorkerContext) -> impl IntoTaskHandlerResult {
                run_job(&self.0, &ctx).await
            }
        }
    };
}

task!(Job, "job");
task!(Shared, "shared");
task!(ForRust, "for_rust");

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Batch(Value);

impl BatchTaskHandler for Batch {
    const IDENTIFIER: &'static str = "batch";

    async fn run_batch(items: Vec<Self>, ctx: WorkerContext) -> impl IntoBatchTaskHandlerResult {
        let recorded = run_job(&Value::Null, &ctx).await;
        let outcome = |item: &Batch| match item.0["fails"] == json!("in rust") {
            true => Err("as the test asked".to_string()),
            false => recorded.clone(),
        };
        items.iter().map(outcome).collect::<Vec<Result<(), String>>>()
    }
}

fn definitions(wanted: &[String]) -> Vec<JobDefinition> {
    [
        Job::definition(),
        Shared::definition(),
        ForRust::definition(),
        Batch::definition(),
    ]
    .into_iter()
    .filter(|task| wanted.iter().any(|name| name == task.identifier()))
    .collect()
}

// -- what can be asked for ---------------------------------------------------------------------------------------------

async fn connected(url: &str) -> Result<PgPool, Failure> {
    let options = url.parse::<PgConnectOptions>()?.application_name("rust");
    Ok(PgPoolOptions::new().max_connections(20).connect_with(options).await?)
}

async fn run(pool: PgPool, schema: &str, settings: Settings, once: bool) -> Result<Value, Failure> {
    let mut options = WorkerOptions::default()
        .pg_pool(pool)
        .schema(schema.to_string())
        .concurrency(settings.concurrency)
        .poll_interval(Duration::from_millis(settings.poll_ms))
        .shutdown_grace_period(Duration::from_millis(settings.grace_ms))
        .define_jobs(definitions(&settings.tasks));
    if let Some(crontab) = settings.crontab {
        options = options.with_cron(crontab)?;
    }
    if let Some(size) = settings.local_queue {
        options = options.local_queue(LocalQueueConfig::default().with_size(size));
    }
    if let Some(recovery) = settings.recovery {
        options = options.worker_recovery(
            WorkerRecoveryConfig::default()
                .heartbeat_interval(Duration::from_millis(recovery.heartbeat_ms))
                .sweep_interval(Duration::from_millis(recovery.sweep_ms))
                .sweep_threshold(Duration::from_millis(recovery.threshold_ms))
                .recovery_delay(Duration::from_millis(recovery.delay_ms)),
        );
    }
    let worker = options.init().await?;
    println!("starts as {}", worker.worker_id());
    match once {
        true => worker.run_once().await?,
        false => worker.run().await?,
    }
    Ok(Value::Null)
}

async fn add(utils: &WorkerUtils, added: Added) -> Result<Value, Failure> {
    let job_key_mode = added.job_key_mode.as_deref().map(|mode| match mode {
        "replace" => JobKeyMode::Replace,
        "preserve_run_at" => JobKeyMode::PreserveRunAt,
        "unsafe_dedupe" => JobKeyMode::UnsafeDedupe,
        other => panic!("there is no mode {other}"),
    });
    let mut spec = JobSpec::default();
    spec.set_queue_name(added.queue_name);
    spec.set_job_key(added.job_key);
    spec.set_job_key_mode(job_key_mode);
    spec.set_run_at(added.run_at);
    let job = utils.add_raw_job(&added.task, added.payload, spec).await?;
    Ok(json!({ "id": job.id(), "payload": job.payload(), "revision": job.revision(), "run_at": job.run_at() }))
}

fn read_crontab(text: &str, times: &[chrono::NaiveDateTime]) -> Value {
    let item = |item: Crontab| {
        let due: Vec<_> = times.iter().filter(|time| item.should_run_at(time)).collect();
        json!({ "identifier": item.identifier(), "job_key": item.options.job_key, "due": due })
    };
    match parse_crontab(text) {
        Ok(items) => items.into_iter().map(item).collect(),
        Err(error) => json!(error.to_string()),
    }
}

async fn answer(request: Request) -> Result<Value, Failure> {
    if let Action::Crontab { text, times } = &request.action {
        return Ok(read_crontab(text, times));
    }
    let pool = connected(&request.url).await?;
    let utils = WorkerUtils::new(pool.clone(), request.schema.clone());
    match request.action {
        Action::Migrate => {
            utils.migrate().await?;
            Ok(Value::Null)
        }
        Action::Run(settings) => run(pool, &request.schema, settings, false).await,
        Action::RunOnce(settings) => run(pool, &request.schema, settings, true).await,
        Action::Add(added) => add(&utils, added).await,
        Action::Remove { job_key } => {
            utils.remove_job(&job_key).await?;
            Ok(Value::Null)
        }
        Action::Crontab { .. } => unreachable!("it needs no database"),
        Action::Sweep { threshold_ms } => {
            let options = SweepStaleWorkersOptions {
                sweep_threshold: Some(Duration::from_millis(threshold_ms)),
                recovery_delay: Some(Duration::ZERO),
                dry_run: false,
            };
            let swept = utils.sweep_stale_workers(options).await?;
            Ok(json!({ "workers": swept.worker_ids, "jobs": swept.recovered_count }))
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let text = std::env::args().nth(1).ok_or("the request is missing")?;
    let answered = answer(serde_json::from_str(&text)?).await?;
    println!("{answered}");
    Ok(())
}
