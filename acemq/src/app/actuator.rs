//! Health and metrics of an application over HTTP.

use std::{
    net::{SocketAddr, TcpListener},
    str::FromStr,
};

use super::{Handle, running::Services};
use crate::{
    Error,
    actuator::{self, DEFAULT_ADDRESS, Hosts},
};

/// Where health and metrics are served, if they are.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) address: Option<String>,
    pub(super) hosts: Vec<String>,
}

/// A socket that waits for the application to start.
#[derive(Debug)]
pub(super) struct Bound {
    listener: tokio::net::TcpListener,
    address: SocketAddr,
    hosts: Hosts,
}

impl Settings {
    /// Takes what the environment says: an address, `off`, or nothing for the default.
    pub(super) fn set(&mut self, value: Option<String>) {
        self.address = match value {
            None => Some(DEFAULT_ADDRESS.to_owned()),
            Some(off) if off == "off" => None,
            address => address,
        };
    }

    /// Takes the address before anything else is begun, and makes sure that metrics are counted from the first one on.
    pub(super) fn bind(self) -> Result<Option<Bound>, Error> {
        let Some(address) = self.address else {
            return Ok(None);
        };
        let failed = |why: String| Error::Actuator { address: address.clone(), why };
        let parsed = SocketAddr::from_str(&address)
            .map_err(|_| failed("it is no address and port, such as `127.0.0.1:9464`".to_owned()))?;
        let taken = |error: std::io::Error| {
            failed(format!("{error}; give it another address with `App::actuator` or `ACEMQ_ACTUATOR`, or `off`"))
        };
        let listener = TcpListener::bind(parsed).map_err(taken)?;
        listener.set_nonblocking(true).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(taken)?;
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "health and metrics are served without a password to whoever reaches this address");
        }
        actuator::install_exporter();
        Ok(Some(Bound { listener, address, hosts: Hosts::new(self.hosts) }))
    }
}

impl Bound {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn serve(self, handle: &Handle, services: &Services) {
        let router = actuator::guarded(handle, self.hosts);
        tracing::info!(address = %self.address, "serving health and metrics");
        services.tasks.spawn(actuator::serve(self.listener, router, services.end.clone()));
    }
}
