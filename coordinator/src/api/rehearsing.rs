//! Rehearsals: definitions that run in virtual time, each in a process of its own.
//!
//! The definition and its mocks come from a client, and this process has secrets, connections and other clients. So the
//! other process gets nothing but the request, on its stdin, and writes the answer to its stdout. It has no environment
//! and no open files, and limits its own memory (`cli/src/commands/rehearse.rs`); its time is limited here.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use swirl_api::rehearsals::{Rehearsal, Rehearsed};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::{Problem, bounded};

/// How long a rehearsal may take.
const TIME_MAX: Duration = Duration::from_secs(10);

/// How many may be under way at once. Each may take 256 MiB, and a small server has little more.
const AT_ONCE: usize = 1;

/// The largest answer, and the part of the error output that is looked at, in bytes.
const ANSWER_BYTES_MAX: u64 = 32 << 20;
const ERRORS_BYTES_MAX: u64 = 16 << 10;

/// The beginning of the last words of a process that gets no more memory.
const NO_MEMORY: &str = "memory allocation of";

/// Runs rehearsals.
#[derive(Clone)]
pub struct Rehearsals(Arc<Parts>);

struct Parts {
    /// The program and its arguments.
    command: Vec<String>,
    time_max: Duration,
    places: Arc<Semaphore>,
}

/// The end of the other process.
enum Ended {
    Answered {
        status: ExitStatus,
        answer: Vec<u8>,
        errors: Vec<u8>,
    },
    TooLate,
}

impl Rehearsals {
    /// Runs them with this program, which has a command for it.
    pub fn by_this_program() -> Rehearsals {
        // Also after the file has been replaced.
        let itself = std::path::Path::new("/proc/self/exe");
        let program = match itself.exists() {
            true => itself.to_owned(),
            false => std::env::current_exe().unwrap_or_else(|_| "swirl".into()),
        };
        let program = program.to_string_lossy().into_owned();
        Rehearsals::by(vec![program, "rehearse".to_owned()], TIME_MAX)
    }

    fn by(command: Vec<String>, time_max: Duration) -> Rehearsals {
        Rehearsals(Arc::new(Parts {
            command,
            time_max,
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }))
    }

    /// The place for one rehearsal, until it is dropped.
    pub fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.0.places.clone().try_acquire_owned().map_err(|_| {
            let detail = "this server rehearses one definition at a time: try again in a moment";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-rehearsals", detail)
        })
    }

    pub async fn rehearse(&self, asked: &Rehearsal) -> Result<Rehearsed, Problem> {
        let request = serde_json::to_vec(asked).map_err(|error| failed(&error))?;
        match self.run(&request).await.map_err(|error| failed(&error))? {
            Ended::TooLate => Ok(stopped(format!(
                "it was stopped after {} s of real time before it ended: it loops, or does too much; set in 'until' when the run stops, or limit what repeats",
                self.0.time_max.as_secs()
            ))),
            Ended::Answered {
                status,
                answer,
                errors,
            } => {
                let errors = String::from_utf8_lossy(&errors).into_owned();
                if status.success() {
                    return read(&answer);
                }
                if errors.contains(NO_MEMORY) {
                    return Ok(stopped(
                        "it needed more than 256 MiB of memory: it loops, or its data is too large"
                            .to_owned(),
                    ));
                }
                if status.code().is_none() {
                    // The kernel ended it, for lack of memory or because its stack was full.
                    return Ok(stopped(format!(
                        "its process was killed ({status}): it probably needed too much memory"
                    )));
                }
                tracing::error!(%status, errors = bounded(&errors), "a rehearsal failed");
                Err(failed(&format!("its process ended with {status}")))
            }
        }
    }

    async fn run(&self, request: &[u8]) -> io::Result<Ended> {
        let Some((program, arguments)) = self.0.command.split_first() else {
            return Err(io::Error::other("no program is configured"));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // A signal from a terminal is for this process, which answers its clients before it ends.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let ended = async {
            let (fed, answer, errors) = tokio::join!(
                feed(stdin, request),
                take(stdout, ANSWER_BYTES_MAX),
                take(stderr, ERRORS_BYTES_MAX)
            );
            fed?;
            Ok(Ended::Answered {
                status: child.wait().await?,
                answer: answer?,
                errors: errors?,
            })
        };
        let ended = tokio::time::timeout(self.0.time_max, ended).await;
        ended.unwrap_or(Ok(Ended::TooLate))
    }
}

/// Writes all of the request. The process need not read it.
async fn feed(stdin: Option<ChildStdin>, request: &[u8]) -> io::Result<()> {
    let Some(mut stdin) = stdin else {
        return Ok(());
    };
    match stdin.write_all(request).await {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Reads to the end, and drops what is beyond the limit.
async fn take(from: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        (&mut from).take(bytes_max).read_to_end(&mut bytes).await?;
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

fn stopped(message: String) -> Rehearsed {
    Rehearsed {
        message: Some(message),
        passed: "PT0S".to_owned(),
        ..Rehearsed::default()
    }
}

fn failed(error: &dyn std::fmt::Display) -> Problem {
    let detail = format!("the rehearsal could not be made: {error}");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
}

/// The answer of the process: what happened, or the refusal.
fn read(answer: &[u8]) -> Result<Rehearsed, Problem> {
    let answer: Result<Rehearsed, swirl_api::Problem> =
        serde_json::from_slice(answer).map_err(|error| failed(&error))?;
    answer.map_err(|refused| {
        let code = match &*refused.code {
            "definition-invalid" => "definition-invalid",
            _ => "mocks-invalid",
        };
        let detail = bounded(&refused.detail);
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
            .with(|more| more.diagnostics = refused.more.diagnostics)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(script: &str, time_max: Duration) -> Rehearsals {
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        Rehearsals::by(command.to_vec(), time_max)
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn answers_and_refusals_are_passed_on() {
        let answer = r#"{"Ok": {"instances": [], "passed": "PT3S", "beginning": ""}}"#;
        let done = by(&format!("cat > /dev/null; echo '{answer}'"), PATIENCE);
        let found = done.rehearse(&Rehearsal::default()).await.unwrap();
        assert_eq!(found.passed, "PT3S");
        let answer = r#"{"Err": {"code": "mocks-invalid", "detail": "no", "status": 422}}"#;
        let refused = by(&format!("echo '{answer}'"), PATIENCE);
        let problem = refused.rehearse(&Rehearsal::default()).await.unwrap_err();
        assert_eq!(problem.detail(), "no");
    }

    #[tokio::test]
    async fn a_process_that_does_not_end_is_stopped() {
        // It has nothing of this process' environment.
        let slow = by(
            "[ -z \"$HOME\" ] && exec sleep 600",
            Duration::from_millis(200),
        );
        let found = slow.rehearse(&Rehearsal::default()).await.unwrap();
        let message = found.message.unwrap();
        assert!(message.starts_with("it was stopped after 0 s"), "{message}");
        let large = by(
            "echo memory allocation of 7 bytes failed >&2; exit 1",
            PATIENCE,
        );
        let found = large.rehearse(&Rehearsal::default()).await.unwrap();
        assert!(found.message.unwrap().contains("256 MiB"));
        let killed = by("kill -9 $$", PATIENCE);
        let found = killed.rehearse(&Rehearsal::default()).await.unwrap();
        assert!(found.message.unwrap().contains("signal: 9"));
        let broken = by("exit 3", PATIENCE);
        let problem = broken.rehearse(&Rehearsal::default()).await.unwrap_err();
        assert!(problem.detail().contains("exit status: 3"));
    }

    #[test]
    fn one_is_under_way_at_a_time() {
        let rehearsals = Rehearsals::by_this_program();
        let place = rehearsals.enter().ok().unwrap();
        let refused = rehearsals.enter().err().unwrap();
        assert!(refused.detail().contains("one definition at a time"));
        drop(place);
        assert!(rehearsals.enter().is_ok());
    }
}
