//! Opens one lapin connection, and says in the caller's terms why it could not.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use lapin::{
    ConnectionProperties, ErrorKind,
    tcp::OwnedTLSConfig,
    uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo},
};
use tokio::time::{Instant, timeout_at};

use super::{
    config::Settings,
    filter::{Filter, Greeting},
    url::Target,
    wire::{self, Once, Switch, Wire},
};
use crate::transport::ConnectError;

/// The frame size that RabbitMQ has by default. Named, since "no limit" would lift the cap for everything that is sized
/// by it.
const FRAME_MAX: u32 = 131_072;

/// A connection that finished its handshake.
pub(super) struct Opened {
    pub(super) lapin: lapin::Connection,
    pub(super) greeting: Greeting,
    pub(super) switch: Switch,
}

/// Connects, within one deadline for all steps. Runs on the background runtime.
pub(super) async fn open(target: &Target, settings: &Settings, name: &str) -> Result<Opened, ConnectError> {
    let patience = target.connect_timeout.unwrap_or(settings.connect_timeout);
    let deadline = Instant::now() + patience;
    let address = target.address();

    let socket = match timeout_at(deadline, wire::dial(&target.host, target.port)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) => {
            let why = error.to_string();
            return Err(ConnectError::Unreachable { address, why });
        }
        Err(_) => {
            let why = format!("no answer within {patience:?}");
            return Err(ConnectError::Unreachable { address, why });
        }
    };
    let socket = if target.tls {
        let tls = OwnedTLSConfig { identity: None, cert_chain: settings.root_certificates.clone() };
        match timeout_at(deadline, socket.into_tls(&target.host, tls.as_ref())).await {
            Ok(Ok(socket)) => socket,
            Ok(Err(error)) => {
                let why = format!("TLS failed: {}", innermost(&error));
                return Err(ConnectError::Other { address, why });
            }
            Err(_) => return Err(timed_out(address, patience)),
        }
    } else {
        socket
    };

    let switch = Switch::default();
    let greeting = Arc::new(OnceLock::new());
    let filter = Filter::new(Arc::clone(&greeting));
    let once = Once::new(Wire::new(socket, filter, switch.clone()));
    let handshake = lapin::Connection::connector(
        uri(target, settings),
        wire::runtime(),
        async move |_, _| once.take(),
        properties(name),
    );
    match timeout_at(deadline, handshake).await {
        Ok(Ok(lapin)) => {
            let greeting = greeting.get().cloned().unwrap_or_default();
            tracing::info!(
                %address,
                product = greeting.product,
                version = greeting.version,
                name,
                "connected"
            );
            Ok(Opened { lapin, greeting, switch })
        }
        Ok(Err(error)) => {
            switch.cut();
            Err(refused(target, address, &error))
        }
        Err(_) => {
            switch.cut();
            Err(timed_out(address, patience))
        }
    }
}

fn timed_out(address: String, after: Duration) -> ConnectError {
    ConnectError::TimedOut { address, after }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// lapin's form of a target. The scheme is always the plain one, since TLS is already done when lapin gets the socket.
fn uri(target: &Target, settings: &Settings) -> AMQPUri {
    AMQPUri {
        scheme: AMQPScheme::AMQP,
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo { username: target.user.clone(), password: target.password.clone() },
            host: target.host.clone(),
            port: target.port,
        },
        vhost: target.vhost.clone(),
        query: AMQPQueryString {
            frame_max: Some(FRAME_MAX),
            channel_max: target.channel_max,
            heartbeat: Some(target.heartbeat.unwrap_or(settings.heartbeat)),
            ..AMQPQueryString::default()
        },
    }
}

fn properties(name: &str) -> ConnectionProperties {
    ConnectionProperties::default()
        .with_connection_name(name.into())
        .with_client_property("product".into(), "acemq".into())
        .with_client_property("version".into(), env!("CARGO_PKG_VERSION").into())
}

/// Why the broker ended the handshake.
fn refused(target: &Target, address: String, error: &lapin::Error) -> ConnectError {
    let user = target.user.clone();
    let other = |why: String| ConnectError::Other { address: address.clone(), why };
    match error.kind() {
        ErrorKind::ProtocolError(amqp) => {
            let why = amqp.get_message().to_string();
            match amqp.get_id() {
                403 => ConnectError::Credentials { address, user },
                // Limits of connections have the same code as a missing virtual host, and pass.
                530 if !why.contains("limit") => ConnectError::Vhost {
                    address,
                    vhost: target.vhost.clone(),
                    user,
                    why,
                },
                _ => other(why),
            }
        }
        ErrorKind::InvalidProtocolVersion(version) => {
            other(format!("the peer speaks AMQP {version}, and acemq AMQP 0-9-1"))
        }
        ErrorKind::ParsingError(_) => other("the peer does not speak AMQP 0-9-1".to_owned()),
        ErrorKind::IOError(error) if closed(error) => other(
            "the peer closed the connection during the handshake; check that it is an AMQP port, and that both sides agree on TLS".to_owned(),
        ),
        _ => other(error.to_string()),
    }
}

fn closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
    )
}
