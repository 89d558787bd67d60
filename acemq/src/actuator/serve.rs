//! A small HTTP server for few and short requests: whoever is slow or many is cut off.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// So many connections at once; further ones are closed unanswered.
const CONNECTIONS: usize = 32;

/// How long a request may take to come.
const REQUEST: Duration = Duration::from_secs(5);

/// How long a connection may last, from its first byte to the last of the answer.
const CONNECTION: Duration = Duration::from_secs(10);

/// The most that is read of a request.
const REQUEST_BYTES: usize = 16 * 1024;

/// The wait after the system could not give a connection, as when there are no descriptors left.
const NO_CONNECTION: Duration = Duration::from_millis(100);

/// Serves until the end; afterwards there is no task and no socket left.
pub(crate) async fn serve(listener: TcpListener, router: Router, end: CancellationToken) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = end.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(NO_CONNECTION).await;
            continue;
        };
        let Ok(place) = Arc::clone(&free).try_acquire_owned() else {
            continue;
        };
        let (service, end) = (TowerToHyperService::new(router.clone()), end.clone());
        tasks.spawn(async move {
            let _place = place;
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST)
                .max_buf_size(REQUEST_BYTES)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                biased;
                () = end.cancelled() => {}
                // Whether the client liked it is its own affair.
                _ = tokio::time::timeout(CONNECTION, connection) => {}
            }
        });
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}
