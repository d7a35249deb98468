//! graphile_worker_rs as it is fastest: `install URL`, `once URL`, `run URL`, and `add URL COUNT QUEUES`.

use std::error::Error;
use std::fs::{write, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, LocalQueueGetJobsComplete, RawJobSpec, TaskHandler,
    WorkerContext, WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::Notify;

type Failure = Box<dyn Error + Send + Sync>;

const SCHEMA: &str = "graphile_worker";
const CONCURRENCY: usize = 24;
const CHUNK: usize = 10_000;

static RAN: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static STARTED: Mutex<Option<File>> = Mutex::new(None);

#[derive(Serialize, Deserialize)]
struct Noop {
    n: u32,
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, _: WorkerContext) -> impl IntoTaskHandlerResult {
        RAN.lock().unwrap().push(self.n);
        Ok::<(), String>(())
    }
}

#[derive(Serialize, Deserialize)]
struct Started {
    n: Option<u32>,
}

impl TaskHandler for Started {
    const IDENTIFIER: &'static str = "started";

    async fn run(self, _: WorkerContext) -> impl IntoTaskHandlerResult {
        let now = monotonic_ns();
        let line = self.n.map_or(format!("{now}\n"), |n| format!("{now} {n}\n"));
        match STARTED.lock().unwrap().as_mut() {
            Some(pipe) => pipe.write_all(line.as_bytes()).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// The clock that all processes of one machine share, which the standard library hides; its number is Linux's.
fn monotonic_ns() -> i64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(1, &mut time) };
    time.seconds * 1_000_000_000 + time.nanoseconds
}

/// Run until a signal, or with `once` until a claim finds no job.
///
/// A local queue is fastest for `once`. While it is empty, it claims without a pause or reacts late to notifications,
/// so `run` claims jobs singly, with the default concurrency.
async fn work(url: &str, once: bool) -> Result<(), Failure> {
    if let Ok(path) = std::env::var("BENCH_STARTED") {
        *STARTED.lock().unwrap() = Some(OpenOptions::new().write(true).open(path)?);
    }
    let pool = PgPoolOptions::new().max_connections(CONCURRENCY as u32 + 1).connect(url).await?;
    let mut options = WorkerOptions::default()
        .pg_pool(pool)
        .schema(SCHEMA)
        .poll_interval(Duration::from_secs(2))
        .define_job::<Noop>()
        .define_job::<Started>();
    if once {
        let empty = Arc::new(Notify::new());
        let (found_none, ends) = (empty.clone(), empty);
        options = options
            .concurrency(CONCURRENCY)
            .local_queue(LocalQueueConfig::default().with_size(500))
            .complete_job_batch_delay(Duration::from_millis(1))
            .shutdown_signal(async move { ends.notified().await })
            .on(LocalQueueGetJobsComplete, move |claimed| {
                if claimed.jobs_count == 0 {
                    found_none.notify_one();
                }
                std::future::ready(())
            });
    }
    options.init().await?.run().await?;
    let ran = RAN.lock().unwrap().iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>();
    let folder = std::env::var("BENCH_RAN")?;
    write(Path::new(&folder).join(format!("ran-{}", std::process::id())), ran)?;
    Ok(())
}

/// Print how many seconds it takes from plain values to committed jobs; connecting is not in it.
async fn add(utils: &WorkerUtils, count: usize, queues: usize) -> Result<(), Failure> {
    let began = Instant::now();
    for first in (0..count).step_by(CHUNK) {
        let job = |n: usize| {
            let mut spec = JobSpec::default();
            spec.set_queue_name((queues > 0).then(|| format!("queue-{}", n % queues)));
            RawJobSpec { identifier: "noop".into(), payload: json!({ "n": n }), spec }
        };
        utils.add_raw_jobs(&(first..count.min(first + CHUNK)).map(job).collect::<Vec<_>>()).await?;
    }
    println!("{}", began.elapsed().as_secs_f64());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (action, url) = (words[0].as_str(), words[1].as_str());
    if action == "once" || action == "run" {
        return work(url, action == "once").await;
    }
    let pool = PgPoolOptions::new().connect(url).await?;
    let utils = WorkerUtils::new(pool, SCHEMA.to_string());
    match action {
        "install" => Ok(utils.migrate().await?),
        "add" => add(&utils, words[2].parse()?, words[3].parse()?).await,
        other => panic!("there is no action {other}"),
    }
}
