//! A child program of a test: an example, or this test binary again.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{keeper, server};

/// How long [`Program::run`] and the `Drop` of a program may take to see an end.
const INTERVAL: Duration = Duration::from_millis(5);

/// What a child program is started with.
#[derive(Debug)]
pub struct Builder {
    command: Command,
}

/// A running child program whose output is read line by line; it is killed with this value.
#[derive(Debug)]
pub struct Program {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Builder {
    /// The program at `path`.
    pub fn new(path: impl AsRef<OsStr>) -> Self {
        Self { command: Command::new(path) }
    }

    /// The example `name` of the package `acemq-examples`, which `cargo test --workspace` builds.
    pub fn example(name: &str) -> Self {
        let path = built(&format!("examples/{name}"));
        assert!(
            path.is_file(),
            "the example {name} is not built: {} is missing; run `cargo build -p acemq-examples --examples`",
            path.display()
        );
        Self::new(path)
    }

    /// The test `name` of this test binary again, alone and in a process of its own, for what a test cannot do to
    /// itself: be killed, or get a signal. Mark that test `#[ignore]`, so that nothing else runs it.
    pub fn test(name: &str) -> Self {
        let this = std::env::current_exe().expect("a test binary knows its path");
        Self::new(this).args([name, "--exact", "--ignored", "--nocapture"])
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Program {
        let name = PathBuf::from(self.command.get_program()).display().to_string();
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        keeper::watch_group(child.id());
        let lines = Arc::default();
        read(child.stdout.take(), &lines);
        read(child.stderr.take(), &lines);
        Program { child, lines }
    }
}

impl Program {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far, both streams in the order in which they were read.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a line that contains `part` and gives it; a line that was printed before the call counts.
    pub async fn line(&self, part: &str, deadline: Duration) -> String {
        self.nth_line(part, 1, deadline).await
    }

    /// Waits for the `nth` line, counted from 1, that contains `part`.
    pub async fn nth_line(&self, part: &str, nth: usize, deadline: Duration) -> String {
        let start = Instant::now();
        loop {
            let lines = self.lines();
            if let Some(line) = lines.iter().filter(|line| line.contains(part)).nth(nth - 1) {
                return line.clone();
            }
            assert!(
                start.elapsed() < deadline,
                "waited {deadline:?} in vain for a program to print {part:?} ({nth}); it printed:\n{}",
                lines.join("\n")
            );
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        server::send("TERM", self.child.id());
    }

    /// Sends SIGINT.
    pub fn interrupt(&self) {
        server::send("INT", self.child.id());
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Waits for its end, which must come before `deadline`.
    pub async fn ended(&mut self, deadline: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(
                start.elapsed() < deadline,
                "waited {deadline:?} in vain for a program to end; it printed:\n{}",
                self.lines().join("\n")
            );
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Waits for its end and gives the exit code, or `None` when a signal ended it.
    pub async fn exit_code(&mut self, deadline: Duration) -> Option<i32> {
        self.ended(deadline).await.code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        keeper::forget_group(self.child.id());
    }
}

/// Collects the lines of `stream` until it ends.
fn read(stream: Option<impl Read + Send + 'static>, lines: &Arc<Mutex<Vec<String>>>) {
    let stream = BufReader::new(stream.expect("the stream was asked for"));
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in stream.lines().map_while(Result::ok) {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    });
}

/// The file `name` in the directory where cargo puts what it builds in this profile.
fn built(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a test binary knows its path");
    // It lies in `deps` of that directory.
    let dir = this.parent().and_then(Path::parent).expect("a test binary lies in target/PROFILE/deps");
    dir.join(name)
}
