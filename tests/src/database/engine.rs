//! What differs between the two database servers: programs, arguments, addresses.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Kind;
use super::program::{self, Account, command};

/// Names the server program of a MySQL, to be used wherever a test asks for a MariaDB.
pub(super) const MYSQL: &str = "ACEMQ_TEST_MYSQL";

/// One kind of server as it is installed here.
#[derive(Debug)]
pub(super) struct Engine {
    kind: Kind,
    /// Whether it is a MySQL in the place of a MariaDB.
    mysql: bool,
    /// Whether what is written is forced to the disk.
    durable: bool,
    account: Option<Account>,
    initialise: PathBuf,
    server: PathBuf,
    client: PathBuf,
}

impl Engine {
    /// Finds the programs, or fails the test with a sentence that says what to do.
    pub(super) fn find(kind: Kind) -> Self {
        let (user, package) = match kind {
            Kind::Postgres => ("postgres", "postgresql"),
            Kind::MariaDb => ("mysql", "mariadb-server"),
        };
        let mysql = std::env::var_os(MYSQL).filter(|_| kind == Kind::MariaDb).map(PathBuf::from);
        let programs = match (kind, &mysql) {
            (_, Some(server)) => {
                program::find(&["mysql", "mariadb"]).map(|client| [server.clone(), server.clone(), client])
            }
            (Kind::Postgres, None) => {
                program::postgres().map(|folder| ["initdb", "postgres", "psql"].map(|name| folder.join(name)))
            }
            (Kind::MariaDb, None) => {
                program::all([["mariadb-install-db", "mysql_install_db"], ["mariadbd", "mysqld"], ["mariadb", "mysql"]])
            }
        };
        let [initialise, server, client] = programs.unwrap_or_else(|| {
            panic!(
                "{name} is not on this machine: run scripts/test.sh, which installs it, or install Debian's package \
                 {package} or its like, or leave it out by ACEMQ_TEST_WITHOUT={left_out}",
                name = name(kind),
                left_out = kind.server().name(),
            )
        });
        let account = Account::instead_of_root(user);
        Self { kind, mysql: mysql.is_some(), durable: false, account, initialise, server, client }
    }

    /// Has it force what it commits to the disk, as a server that somebody relies on does.
    pub(super) fn durable(self) -> Self {
        Self { durable: true, ..self }
    }

    pub(super) fn name(&self) -> &'static str {
        name(self.kind)
    }

    /// Makes the account that runs the server the owner of `dir`.
    pub(super) fn give(&self, dir: &Path) {
        if let Some(account) = self.account {
            account.own(dir);
        }
    }

    /// Makes the files of a server in `dir`.
    pub(super) fn initialise(&self, dir: &Path) -> Command {
        let mut command = command(self.account, &self.initialise);
        let data = dir.join("data");
        match self.kind {
            Kind::Postgres => {
                command.arg("--pgdata").arg(data);
                command.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
            }
            Kind::MariaDb if self.mysql => {
                command.args(["--no-defaults", "--initialize-insecure", "--secure-file-priv="]);
                command.arg(argument("--datadir=", &data)).arg(argument("--tmpdir=", dir));
            }
            Kind::MariaDb => {
                command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
                command.arg(argument("--datadir=", &data));
                // It would be looked for in a system table that is not there yet.
                command.args(["--skip-name-resolve", "--force"]);
                // A server that starts removes the temporary tables of all others from the directory for them.
                command.env("TMPDIR", dir);
            }
        }
        command
    }

    /// Runs the server of `dir` in the foreground.
    pub(super) fn server(&self, dir: &Path, port: u16) -> Command {
        let mut command = command(self.account, &self.server);
        let data = dir.join("data");
        match self.kind {
            Kind::Postgres => {
                command.arg("-D").arg(data).args(["-p", &port.to_string()]);
                // What is written survives a kill without it; only a crash of the machine would need it.
                let fsync = if self.durable { "fsync=on" } else { "fsync=off" };
                for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", fsync] {
                    command.args(["-c", setting]);
                }
                command.args(["-c", "shared_buffers=32MB", "-c", "max_connections=200"]);
            }
            Kind::MariaDb => {
                command.arg("--no-defaults").arg(argument("--datadir=", &data));
                command.arg(argument("--tmpdir=", dir));
                command.arg(argument("--socket=", &dir.join("socket")));
                command.arg(argument("--pid-file=", &dir.join("pid")));
                command.args([&format!("--port={port}"), "--bind-address=127.0.0.1"]);
                command.arg("--innodb-buffer-pool-size=32M");
                if self.mysql {
                    command.args(["--innodb-redo-log-capacity=32M", "--disable-log-bin", "--mysqlx=OFF"]);
                    command.arg("--secure-file-priv=");
                } else {
                    command.args(["--innodb-log-file-size=16M", "--skip-name-resolve"]);
                }
                // As above: the log is written at every commit, and not forced to the disk.
                let flush = if self.durable { "1" } else { "2" };
                command.arg(format!("--innodb-flush-log-at-trx-commit={flush}"));
                command.arg("--character-set-server=utf8mb4");
            }
        }
        command
    }

    /// Runs the statements in its last argument, which is to be added.
    pub(super) fn client(&self, port: u16, database: &str) -> Command {
        let mut command = command(self.account, &self.client);
        match self.kind {
            Kind::Postgres => {
                command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--field-separator=\t"]);
                command.args(["--host=127.0.0.1", &format!("--port={port}"), "--username=postgres"]);
                command.args(["--set=ON_ERROR_STOP=1", &format!("--dbname={database}"), "--command"]);
            }
            Kind::MariaDb => {
                command.args(["--no-defaults", "--batch", "--skip-column-names", "--protocol=tcp", "--user=root"]);
                command.args(["--host=127.0.0.1", &format!("--port={port}")]);
                command.args([&format!("--database={database}"), "--execute"]);
            }
        }
        command
    }

    /// The database that is there from the start.
    pub(super) fn first_database(&self) -> &'static str {
        match self.kind {
            Kind::Postgres => "postgres",
            Kind::MariaDb => "mysql",
        }
    }

    pub(super) fn url(&self, port: u16, database: &str) -> String {
        match self.kind {
            Kind::Postgres => format!("postgres://postgres@127.0.0.1:{port}/{database}"),
            Kind::MariaDb => format!("mysql://root@127.0.0.1:{port}/{database}"),
        }
    }

    /// The signal for an end in order that does not wait for clients.
    pub(super) fn stop_signal(&self) -> &'static str {
        match self.kind {
            Kind::Postgres => "INT",
            Kind::MariaDb => "TERM",
        }
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => "PostgreSQL",
        Kind::MariaDb => "MariaDB",
    }
}

fn argument(option: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(option);
    argument.push(path);
    argument
}
