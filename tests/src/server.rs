//! A server process of a test: started in its own process group, watched, and killed with the value.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::keeper;

/// A directory that is removed with this value, and also when the test process is killed.
///
/// `ACEMQ_TEST_KEEP=1` keeps it when the value is dropped, for its logs.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a new directory `acemq-…` in `parent`.
    pub fn new_in(parent: &Path) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("acemq-")
            .tempdir_in(parent)
            .unwrap_or_else(|error| panic!("cannot make a directory in {}: {error}", parent.display()));
        let path = dir.keep();
        if !keeps() {
            keeper::watch_dir(&path);
        }
        Self { path }
    }

    /// Makes a new directory in the temporary directory of the machine.
    pub fn new() -> Self {
        Self::new_in(&std::env::temp_dir())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if keeps() {
            eprintln!("kept {}", self.path.display());
            return;
        }
        // A process that was killed a moment ago may still have been writing into it.
        for _ in 0..20 {
            if std::fs::remove_dir_all(&self.path).is_ok() || !self.path.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn keeps() -> bool {
    std::env::var_os("ACEMQ_TEST_KEEP").is_some_and(|value| value == "1")
}

/// How long a server may take to end when it is told to quit.
const GRACE: Duration = Duration::from_secs(2);

/// A running server process.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
}

impl Server {
    /// Starts `command` as the leader of a new process group, its output added to `output`.
    ///
    /// It runs behind a gate: a shell that waits for one line and becomes the server then. So there is no moment in
    /// which a killed test process leaves a server that the keeper does not know yet.
    pub(crate) fn spawn(command: &Command, output: &Path) -> Self {
        let file = File::options().create(true).append(true).open(output);
        let file = file.unwrap_or_else(|error| panic!("cannot write {}: {error}", output.display()));
        let mut gated = Command::new("/bin/sh");
        gated.args(["-c", "read -r go && exec \"$@\" </dev/null", "acemq-tests-gate"]);
        gated.arg(command.get_program()).args(command.get_args());
        gated.env_clear();
        gated.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(dir) = command.get_current_dir() {
            gated.current_dir(dir);
        }
        gated.stdin(Stdio::piped()).stderr(file.try_clone().expect("a file can be opened twice")).stdout(file);
        gated.process_group(0);
        let mut child = gated.spawn().expect("/bin/sh cannot be started");
        keeper::watch_group(child.id());
        let mut gate = child.stdin.take().expect("stdin was asked for");
        gate.write_all(b"go\n").expect("the gate of a server closed before the server started");
        Self { child }
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Sends `signal` (`TERM`, `INT`) to the process.
    pub(crate) fn signal(&self, signal: &str) {
        send(signal, self.child.id());
    }

    /// Kills the process group and waits for its leader.
    pub(crate) fn kill(&mut self) {
        if self.ended().is_none() {
            self.signal_group("KILL");
            let _ = self.child.wait();
        }
        keeper::forget_group(self.child.id());
    }

    fn signal_group(&self, signal: &str) {
        let group = format!("-{}", self.child.id());
        let _ = shell("kill -s \"$1\" -- \"$2\"", [signal, &group]).status();
    }

    /// Waits until the process has ended by itself.
    pub(crate) async fn wait(&mut self, deadline: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                keeper::forget_group(self.child.id());
                return Some(status);
            }
            if start.elapsed() > deadline {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Server {
    /// Asks for an end at once and kills what has not ended soon: a PostgreSQL that is killed leaves a segment of
    /// shared memory behind.
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.signal_group("QUIT");
        }
        let start = Instant::now();
        while self.ended().is_none() && start.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }
}

/// Sends `signal` to the process `id`.
pub(crate) fn send(signal: &str, id: u32) {
    let _ = shell("kill -s \"$1\" \"$2\"", [signal, &id.to_string()]).status();
}

/// A command that runs `script` in the shell with `args` as its positional parameters: `kill` is built into every
/// shell, while the program of that name is missing from small images.
fn shell<S: AsRef<OsStr>>(script: &str, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]).args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The last `lines` lines of the file at `path`, for the sentence of a failure.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let text = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
