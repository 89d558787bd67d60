//! Private databases: PostgreSQL and MariaDB on free ports, in a temporary directory, gone with the test.
//!
//! ```no_run
//! # async fn test() {
//! use acemq_tests::database::{self, Database, Kind};
//!
//! // One server for all the tests of this binary, an empty database for each.
//! let url = database::shared(Kind::Postgres).await.fresh().await;
//!
//! // A server of this test's own, to be killed.
//! let own = Database::start(Kind::MariaDb).await;
//! let url = own.fresh().await;
//! own.kill();
//! own.start_again().await;
//! # }
//! ```

mod engine;
mod program;

use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;

use crate::needs;
use crate::ports::Ports;
use crate::server::{Scratch, Server, tail};
use engine::Engine;

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_mins(1);

/// A database server that tests run against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// PostgreSQL, any release.
    Postgres,
    /// MariaDB, any release, or the MySQL whose server program `ACEMQ_TEST_MYSQL` names.
    MariaDb,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Postgres, Self::MariaDb];

    /// What a test that needs it names in [`needs!`](crate::needs!).
    pub fn server(self) -> needs::Server {
        match self {
            Self::Postgres => needs::Server::Postgres,
            Self::MariaDb => needs::Server::MariaDb,
        }
    }
}

/// Whether a MySQL stands in the place of MariaDB.
pub fn is_mysql() -> bool {
    std::env::var_os(engine::MYSQL).is_some()
}

/// The server of `kind` that all tests of this test binary share; started by the first that asks.
pub async fn shared(kind: Kind) -> &'static Database {
    static POSTGRES: OnceCell<Database> = OnceCell::const_new();
    static MARIADB: OnceCell<Database> = OnceCell::const_new();
    let cell = match kind {
        Kind::Postgres => &POSTGRES,
        Kind::MariaDb => &MARIADB,
    };
    cell.get_or_init(|| Database::start(kind)).await
}

/// A private database server.
#[derive(Debug)]
pub struct Database {
    engine: Engine,
    ports: Ports,
    // Before the directory, so that the process is gone when that is removed.
    server: Mutex<Option<Server>>,
    scratch: Scratch,
}

impl Database {
    /// Starts a server of `kind` and waits until it answers a client.
    ///
    /// What it commits survives a kill, but not a crash of the machine: it is not forced to the disk.
    pub async fn start(kind: Kind) -> Self {
        kind.server().assert_wanted();
        Self::run(Engine::find(kind)).await
    }

    /// Starts a server that forces what it commits to the disk, for measurements.
    pub async fn start_durable(kind: Kind) -> Self {
        kind.server().assert_wanted();
        Self::run(Engine::find(kind).durable()).await
    }

    async fn run(engine: Engine) -> Self {
        let scratch = Scratch::new();
        engine.give(scratch.path());
        let database = Self { engine, ports: Ports::claim(1), server: Mutex::new(None), scratch };
        database.initialise().await;
        database.start_again().await;
        database
    }

    async fn initialise(&self) {
        let command = self.engine.initialise(self.scratch.path());
        run(command).await.unwrap_or_else(|error| panic!("{} cannot make its directory: {error}", self.engine.name()));
    }

    /// The port; it stays the same over every restart.
    pub fn port(&self) -> u16 {
        self.ports.port(0)
    }

    /// The address of the database that comes with the server, for its superuser.
    pub fn url(&self) -> String {
        self.url_of(self.engine.first_database())
    }

    /// The address of the database `name`, for the superuser of the server.
    pub fn url_of(&self, name: &str) -> String {
        self.engine.url(self.port(), name)
    }

    /// Makes an empty database and gives its address.
    pub async fn fresh(&self) -> String {
        let name = format!("db_{}", uuid::Uuid::new_v4().simple());
        self.sql(self.engine.first_database(), &format!("CREATE DATABASE {name}")).await;
        self.url_of(&name)
    }

    /// Runs `statements` in the database at `url`, one that this server has, through the server's own client program,
    /// and gives what it prints: a line for each row, with a tab between columns.
    pub async fn sql(&self, url: &str, statements: &str) -> String {
        self.try_sql(url, statements).await.unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// [`Database::sql`] for statements that may fail.
    ///
    /// # Errors
    ///
    /// What the client program printed, when it did not succeed.
    pub async fn try_sql(&self, url: &str, statements: &str) -> Result<String, String> {
        let name = url.rsplit('/').next().unwrap_or(url);
        let mut command = self.engine.client(self.port(), name);
        command.arg(statements);
        run(command).await
    }

    /// The id of the server process, if it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.server().as_ref().map(Server::id)
    }

    /// Ends the server with SIGKILL; what was committed is kept.
    pub fn kill(&self) {
        if let Some(mut server) = self.server().take() {
            server.kill();
        }
    }

    /// Ends the server in order, without waiting for its clients.
    pub async fn stop(&self) {
        let Some(mut server) = self.server().take() else { return };
        server.signal(self.engine.stop_signal());
        let ended = server.wait(PATIENCE).await;
        assert!(ended.is_some(), "{} did not stop within {PATIENCE:?}\n{}", self.engine.name(), self.end_of_log());
    }

    /// Starts the server after [`Database::kill`] or [`Database::stop`], with its data and on its port, and waits
    /// until it answers a client.
    pub async fn start_again(&self) {
        let start = Instant::now();
        self.launch();
        while !self.answers().await {
            assert!(
                start.elapsed() < PATIENCE,
                "{} does not answer after {PATIENCE:?}\n{}",
                self.engine.name(),
                self.end_of_log()
            );
            let ended = self.server().as_mut().and_then(Server::ended);
            if let Some(status) = ended {
                // The children of a killed PostgreSQL hold its memory until they have noticed.
                assert!(
                    start.elapsed() < PATIENCE / 6,
                    "{} ended while it started ({status})\n{}",
                    self.engine.name(),
                    self.end_of_log()
                );
                self.kill();
                self.launch();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Stops the server and starts it again.
    pub async fn restart(&self) {
        self.stop().await;
        self.start_again().await;
    }

    fn launch(&self) {
        let mut server = self.server();
        assert!(server.is_none(), "{} runs already", self.engine.name());
        let command = self.engine.server(self.scratch.path(), self.port());
        *server = Some(Server::spawn(&command, &self.scratch.path().join("out")));
    }

    async fn answers(&self) -> bool {
        // The client program is slow to start, so it is not asked before somebody listens.
        TcpStream::connect(("127.0.0.1", self.port())).is_ok()
            && self.try_sql(self.engine.first_database(), "SELECT 1").await.is_ok()
    }

    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_of_log(&self) -> String {
        format!("the end of its output:\n{}", tail(&self.scratch.path().join("out"), 20))
    }
}

/// Runs a program to its end and gives what it prints.
async fn run(command: Command) -> Result<String, String> {
    let name = Path::new(command.get_program()).display().to_string();
    let mut command = tokio::process::Command::from(command);
    let output = command.kill_on_drop(true).stdin(Stdio::null()).output();
    let output = tokio::time::timeout(PATIENCE, output).await.map_err(|_| format!("no end after {PATIENCE:?}"))?;
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(format!("{}\n{}", text(&output.stdout), text(&output.stderr)))
}
