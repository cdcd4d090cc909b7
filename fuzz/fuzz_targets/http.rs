//! What a connection sends once TLS is taken off. In: bytes. Laws: the server goes on serving; whatever is answered is HTTP/1.1, with a status
//! that is no server error but that there was no time where the request gave little; no bytes make a handler panic; the connection ends when the
//! client's side has.
#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown as Half, SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use drawbridge::server::routes::Reviews;
use drawbridge::server::listener::{Limits, Server, bind};
use drawbridge::server::shutdown::Shutdown;
use drawbridge::server::snapshots::SnapshotCell;
use drawbridge::server::telemetry::metrics::Metrics;
use drawbridge_fuzz::worlds;
use libfuzzer_sys::fuzz_target;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(8);

/// How a request says how much time there is.
const HURRY: &[u8] = b"timeout=";

struct Running {
    address: SocketAddr,
    metrics: Arc<Metrics>,
}

static SERVER: LazyLock<Running> = LazyLock::new(|| {
    let metrics = Metrics::new();
    let snapshots = SnapshotCell::new();
    snapshots.store(worlds::world(0).clone());
    let router = Reviews::new(snapshots, metrics.clone()).router();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("threads can be made");
    let socket = runtime.block_on(async { bind(([127, 0, 0, 1], 0).into()) }).expect("the loopback can be listened on");
    let address = socket.local_addr().expect("a bound socket has an address");
    let server = Server {
        name: "fuzz",
        router,
        tls: None,
        limits: Limits::default(),
        shutdown: Shutdown::new(),
        metrics: metrics.clone(),
    };
    std::thread::spawn(move || runtime.block_on(server.serve(socket)));
    Running { address, metrics }
});

fuzz_target!(|data: &[u8]| {
    let running = &*SERVER;
    let mut stream = TcpStream::connect(running.address).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    // Refused early, the rest is not taken: that is an answer, too.
    let sent = stream.write_all(data).and_then(|()| stream.shutdown(Half::Write)).is_ok();
    let mut answers = Vec::new();
    match stream.read_to_end(&mut answers) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the connection does not end"),
        // Closed with bytes unread.
        Err(_) => assert!(!sent || !data.is_empty()),
    }
    if !answers.is_empty() {
        let status = answers.strip_prefix(b"HTTP/1.1 ").or_else(|| answers.strip_prefix(b"HTTP/1.0 "));
        let status =
            status.and_then(|rest| rest.get(..3)).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&answers)));
        let hurried = status == b"504" && data.windows(HURRY.len()).any(|window| window == HURRY);
        assert!(status[0] != b'5' || hurried, "{}", String::from_utf8_lossy(&answers));
    }
    assert_eq!(running.metrics.panics.get(), 0, "a handler panicked");
});
