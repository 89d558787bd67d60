//! One private RabbitMQ node: start, kill, stop, start again.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::install::{Install, Version};
use crate::ports::Ports;
use crate::server::{Scratch, Server, tail};

/// How long a node may take to start or to stop, on a busy machine with two cores.
const PATIENCE: Duration = Duration::from_secs(90);

/// The secret that lets Erlang nodes talk to each other; these listen on the loopback interface only.
pub(super) const COOKIE: &str = "ACEMQTESTS";

/// What the Erlang machine of a server is started with: distribution on the loopback interface only, and the counts of
/// quorum queues, which they publish by a timer of 5 s, up to date.
const ERL_ARGS: &str = "-kernel inet_dist_use_interface {127,0,0,1} -rabbit quorum_tick_interval 100";

/// The first port of those that `rabbitmqctl` may use, counted from the node's first, and how many they are.
const CTL_PORTS: (u16, u16) = (2, 4);

/// The Erlang port mapper of one node or of one cluster; it never meets the machine's own.
#[derive(Debug)]
pub(super) struct Mapper {
    ports: Ports,
    _server: Server,
    _scratch: Scratch,
}

impl Mapper {
    pub(super) fn start(install: &Install) -> Arc<Self> {
        let ports = Ports::claim(1);
        let scratch = Scratch::new();
        let mut command = install.command("epmd");
        command.args(["-address", "127.0.0.1", "-port", &ports.port(0).to_string()]);
        let server = Server::spawn(&command, &scratch.path().join("out"));
        Arc::new(Self { ports, _server: server, _scratch: scratch })
    }
}

/// What a node is started with.
#[derive(Debug, Clone)]
pub struct Builder {
    version: Version,
    name: String,
    conf: String,
    advanced: String,
    mapper: Option<Arc<Mapper>>,
}

impl Builder {
    /// Adds a line to `rabbitmq.conf`, such as `consumer_timeout = 5000`.
    #[must_use]
    pub fn conf(mut self, line: &str) -> Self {
        self.conf.push_str(line);
        self.conf.push('\n');
        self
    }

    /// Sets the whole of `advanced.config`, an Erlang term with a full stop.
    #[must_use]
    pub fn advanced(mut self, term: &str) -> Self {
        term.clone_into(&mut self.advanced);
        self
    }

    /// Makes the node one of a cluster whose nodes share a port mapper.
    pub(super) fn member(mut self, name: &str, mapper: Arc<Mapper>) -> Self {
        name.clone_into(&mut self.name);
        self.mapper = Some(mapper);
        self
    }

    /// Starts the node and waits until it answers a client.
    pub async fn start(self) -> Node {
        let node = self.prepare();
        node.start_again().await;
        node
    }

    /// Writes the files of the node without starting it.
    pub(super) fn prepare(self) -> Node {
        let install = Install::find(self.version);
        let mapper = self.mapper.unwrap_or_else(|| Mapper::start(&install));
        let ports = Ports::claim(CTL_PORTS.0 + CTL_PORTS.1);
        let scratch = Scratch::new_in(&install.scratch_parent());
        let mut conf = format!("listeners.tcp.1 = 127.0.0.1:{}\n", ports.port(0));
        // The guest of a node in another root comes from the loopback interface too; this only spares the look-up.
        conf.push_str("loopback_users = none\nlog.console = false\n");
        conf.push_str(&self.conf);
        let files = [
            ("rabbitmq.conf", conf.as_str()),
            ("advanced.config", self.advanced.as_str()),
            ("enabled_plugins", "[].\n"),
            (".erlang.cookie", COOKIE),
        ];
        for (name, text) in files {
            std::fs::write(scratch.path().join(name), text).expect("a new directory can be written into");
        }
        let cookie = scratch.path().join(".erlang.cookie");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o400);
        std::fs::set_permissions(cookie, private).expect("the mode of a new file can be set");
        let name = format!("{}@localhost", self.name);
        Node {
            install,
            name,
            ports,
            mapper,
            server: Mutex::new(None),
            started: AtomicUsize::new(0),
            scratch,
            ctl: Semaphore::new(2),
        }
    }
}

/// A private RabbitMQ node.
#[derive(Debug)]
pub struct Node {
    install: Install,
    name: String,
    ports: Ports,
    mapper: Arc<Mapper>,
    // Before the directory, so that the process is gone when that is removed.
    server: Mutex<Option<Server>>,
    /// How often it had come up before it was started last.
    started: AtomicUsize,
    scratch: Scratch,
    /// Each `rabbitmqctl` is an Erlang machine of its own, and a node has ports for a few of them.
    ctl: Semaphore,
}

impl Node {
    /// Starts a node of `version` with the settings of its release.
    pub async fn start(version: Version) -> Self {
        Self::builder(version).start().await
    }

    /// Starts nothing yet: the settings of a node of `version`.
    pub fn builder(version: Version) -> Builder {
        Builder { version, name: "rabbit".to_owned(), conf: String::new(), advanced: "[].\n".to_owned(), mapper: None }
    }

    /// The version that is installed, as major, minor and patch.
    pub fn version(&self) -> [u16; 3] {
        self.install.number()
    }

    /// The name of the Erlang node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port of AMQP; it stays the same over every restart.
    pub fn port(&self) -> u16 {
        self.ports.port(0)
    }

    /// The port of Erlang's distribution.
    pub(super) fn distribution_port(&self) -> u16 {
        self.ports.port(1)
    }

    /// The address for the user `guest` and the vhost `/`.
    pub fn url(&self) -> String {
        self.url_for("guest", "guest", "/")
    }

    /// The address for another user or vhost.
    pub fn url_for(&self, user: &str, password: &str, vhost: &str) -> String {
        let [user, password, vhost] = [user, password, vhost].map(percent_encoded);
        format!("amqp://{user}:{password}@127.0.0.1:{}/{vhost}", self.port())
    }

    /// The id of the server process, if it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.server().as_ref().map(Server::id)
    }

    /// The directory of the node: configuration, data and logs.
    pub fn directory(&self) -> PathBuf {
        self.scratch.path().to_owned()
    }

    /// What the node has logged so far.
    pub fn log(&self) -> String {
        let file = self.scratch.path().join(format!("log/{}.log", self.name));
        std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Ends the server with SIGKILL: connections are reset, nothing more is written to disk.
    ///
    /// A confirmed message survives that. A queue that was declared within the last seconds may not, as RabbitMQ does
    /// not wait for its definitions to be written: [`Node::write_out`] makes sure of them.
    pub fn kill(&self) {
        if let Some(mut server) = self.server().take() {
            server.kill();
        }
    }

    /// Ends the server with SIGTERM, as an orderly shutdown does, and waits for its end.
    pub async fn stop(&self) {
        let Some(mut server) = self.server().take() else {
            return;
        };
        server.signal("TERM");
        let ended = server.wait(PATIENCE).await;
        assert!(ended.is_some(), "RabbitMQ {} did not stop within {PATIENCE:?}\n{}", self.name, self.end_of_logs());
    }

    /// Starts the server after [`Node::kill`] or [`Node::stop`], with its data and on its port, and waits until it
    /// answers a client.
    pub async fn start_again(&self) {
        self.launch();
        self.answered().await;
    }

    /// Stops the server and starts it again.
    pub async fn restart(&self) {
        self.stop().await;
        self.start_again().await;
    }

    /// Starts the server process and does not wait.
    pub(super) fn launch(&self) {
        self.started.store(self.startups(), Ordering::Relaxed);
        let mut server = self.server();
        assert!(server.is_none(), "RabbitMQ {} runs already", self.name);
        let mut command = self.command("rabbitmq-server");
        command.arg("-noinput");
        *server = Some(Server::spawn(&command, &self.scratch.path().join("out")));
    }

    /// Waits until the node has logged that it is up, and answers the header of the protocol. It does so a moment before,
    /// too, but takes a queue that is deleted then for one that is down, and tells no consumer.
    pub(super) async fn answered(&self) {
        let start = Instant::now();
        while self.startups() <= self.started.load(Ordering::Relaxed) || !self.answers().await {
            let ended = self.server().as_mut().and_then(Server::ended);
            if let Some(status) = ended {
                panic!("RabbitMQ {} ended while it started ({status})\n{}", self.name, self.end_of_logs());
            }
            assert!(
                start.elapsed() < PATIENCE,
                "RabbitMQ {} does not answer after {PATIENCE:?}\n{}",
                self.name,
                self.end_of_logs()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How often the node has come up, by its log.
    fn startups(&self) -> usize {
        self.log().matches("Server startup complete").count()
    }

    async fn answers(&self) -> bool {
        let look = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port())).await.ok()?;
            stream.write_all(b"AMQP\x00\x00\x09\x01").await.ok()?;
            let mut first = [0; 1];
            stream.read_exact(&mut first).await.ok()?;
            // A method frame: `connection.start`. A node that still boots hangs up instead.
            (first == [1]).then_some(())
        };
        matches!(tokio::time::timeout(Duration::from_secs(2), look).await, Ok(Some(())))
    }

    /// Runs `rabbitmqctl -q` with `args` and gives what it prints; a failure fails the test.
    pub async fn ctl<S: AsRef<str>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let args: Vec<String> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        self.try_ctl(&args).await.unwrap_or_else(|error| panic!("rabbitmqctl {}: {error}", args.join(" ")))
    }

    /// Runs `rabbitmqctl -q` with `args`.
    ///
    /// # Errors
    ///
    /// What the command printed, when it did not succeed.
    pub async fn try_ctl<S: AsRef<str>>(&self, args: &[S]) -> Result<String, String> {
        let _turn = self.ctl.acquire().await.expect("it is never closed");
        let mut command = self.command("rabbitmqctl");
        command.arg("-q").args(args.iter().map(AsRef::as_ref));
        let mut command = tokio::process::Command::from(command);
        let output = command.kill_on_drop(true).stdin(std::process::Stdio::null()).output();
        let output = tokio::time::timeout(PATIENCE, output).await.map_err(|_| format!("no end after {PATIENCE:?}"))?;
        let output = output.map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        Err(format!("{}{}", text(&output.stdout), text(&output.stderr)))
    }

    /// A command of the installation with the environment of this node.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = self.install.command(program);
        let base = self.install.inside(self.scratch.path());
        let below = |name: &str| base.join(name);
        command
            .env("HOME", &base)
            .env("RABBITMQ_NODENAME", &self.name)
            .env("RABBITMQ_BASE", &base)
            .env("RABBITMQ_MNESIA_BASE", below("data"))
            .env("RABBITMQ_LOG_BASE", below("log"))
            .env("RABBITMQ_PID_FILE", below("pid"))
            .env("RABBITMQ_CONFIG_FILE", below("rabbitmq"))
            .env("RABBITMQ_CONFIG_FILES", "")
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", below("advanced.config"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", below("enabled_plugins"))
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env("ERL_CRASH_DUMP", below("erl_crash.dump"))
            .env("RABBITMQ_DIST_PORT", self.distribution_port().to_string())
            // The shell that starts the server becomes the server, so that signals reach it.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", ERL_ARGS)
            .env("RABBITMQ_CTL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}")
            .env("RABBITMQ_CTL_DIST_PORT_MIN", self.ports.port(CTL_PORTS.0).to_string())
            .env("RABBITMQ_CTL_DIST_PORT_MAX", self.ports.port(CTL_PORTS.0 + CTL_PORTS.1 - 1).to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", self.mapper.ports.port(0).to_string())
            // It would be started as a daemon that nobody ends.
            .env("ERL_AFLAGS", "-start_epmd false");
        command
    }

    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_of_logs(&self) -> String {
        let dir = self.scratch.path();
        let log = tail(&dir.join(format!("log/{}.log", self.name)), 20);
        format!("the end of its output:\n{}\nthe end of its log:\n{log}", tail(&dir.join("out"), 20))
    }
}

/// `text` with everything but letters, digits and `-_.~` written as `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02x}");
        }
    }
    encoded
}
