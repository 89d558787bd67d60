//! Which servers a test needs, and the only way to run the tests without them.

use std::io::Write;

/// A server that live tests start for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Server {
    /// RabbitMQ 3.x, `rabbitmq3`.
    RabbitMq3,
    /// RabbitMQ 4.x, `rabbitmq4`.
    RabbitMq4,
    /// PostgreSQL, `postgres`.
    Postgres,
    /// MariaDB, `mariadb`.
    MariaDb,
}

impl Server {
    /// The name in `ACEMQ_TEST_WITHOUT`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RabbitMq3 => "rabbitmq3",
            Self::RabbitMq4 => "rabbitmq4",
            Self::Postgres => "postgres",
            Self::MariaDb => "mariadb",
        }
    }

    /// Whether `ACEMQ_TEST_WITHOUT`, a list of names with commas, names this server.
    pub fn is_left_out(self) -> bool {
        let without = std::env::var("ACEMQ_TEST_WITHOUT").unwrap_or_default();
        without.split(',').any(|name| name.trim() == self.name())
    }

    /// Fails the test when `ACEMQ_TEST_WITHOUT` names this server: a test that may be left out says so by
    /// [`needs!`](crate::needs!) before it starts anything.
    pub(crate) fn assert_wanted(self) {
        assert!(
            !self.is_left_out(),
            "ACEMQ_TEST_WITHOUT leaves {name} out, but this test starts it without `needs!`",
            name = self.name()
        );
    }
}

/// Leaves a test out when `ACEMQ_TEST_WITHOUT` names one of the servers that it needs, and says so even in a run
/// whose output is captured.
///
/// ```
/// # async fn test() {
/// acemq_tests::needs!(RabbitMq4, Postgres);
/// # }
/// ```
#[macro_export]
macro_rules! needs {
    ($($server:ident),+ $(,)?) => {
        $(
            if $crate::needs::leave_out($crate::needs::Server::$server) {
                return;
            }
        )+
    };
}

/// Whether the calling test is to be left out for want of `server`; prints it past the capture of the test runner.
pub fn leave_out(server: Server) -> bool {
    let out = server.is_left_out();
    if out {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test").to_owned();
        let line = format!("LEFT OUT {test}: ACEMQ_TEST_WITHOUT names {}\n", server.name());
        // Not `eprintln!`, which the runner keeps to itself for a test that passes.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    out
}
