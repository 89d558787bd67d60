//! Free TCP ports on the loopback interface that stay free until they are used.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use rand::RngExt;

/// A run of TCP ports that no other harness process takes while this value lives, even while no server listens.
///
/// The same numbers are bound as UDP ports for as long as that: they serve nobody here, the kernel keeps the claim
/// visible to every process, and gives it back when this one ends.
#[derive(Debug)]
pub(crate) struct Ports {
    first: u16,
    _claims: Vec<UdpSocket>,
}

impl Ports {
    /// Claims `count` consecutive ports below the range from which the kernel serves outgoing connections, so that
    /// none of those takes the port of a server that is down for a moment.
    pub(crate) fn claim(count: u16) -> Self {
        let mut random = rand::rng();
        for _ in 0..1000 {
            let first = random.random_range(15_000..32_000 - count);
            if let Some(claims) = (first..first + count).map(free).collect::<Option<Vec<_>>>() {
                return Self { first, _claims: claims };
            }
        }
        panic!("no {count} consecutive ports are free between 15000 and 32000 on 127.0.0.1");
    }

    /// The port at `index`, counted from 0.
    pub(crate) fn port(&self, index: u16) -> u16 {
        self.first + index
    }
}

fn free(port: u16) -> Option<UdpSocket> {
    let claim = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    Some(claim)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn claimed_ports_are_never_given_twice() {
        let claims: Vec<_> = (0..200).map(|_| Ports::claim(5)).collect();
        let mut owners = HashMap::new();
        for (owner, claim) in claims.iter().enumerate() {
            for index in 0..5 {
                assert_eq!(owners.insert(claim.port(index), owner), None);
            }
        }
    }
}
