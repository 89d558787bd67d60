//! A client that says exactly what a test wants, byte for byte.

use std::net::SocketAddr;

use acemq::{App, Running, transport::memory::Memory};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub async fn start(app: App, broker: &Memory) -> Running {
    app.transport(broker.clone()).actuator("127.0.0.1:0").start().await.unwrap()
}

pub async fn get(running: &Running, path: &str) -> Answer {
    ask(address(running), &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")).await
}

pub fn address(running: &Running) -> SocketAddr {
    running.actuator_address().unwrap()
}

pub async fn ask(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { code, head: head.to_lowercase(), body: body.to_owned() }
}
