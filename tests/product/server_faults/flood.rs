//! Many hostile clients beside a healthy one, against a process of its own whose memory is bounded as a container's is.
//!
//! The process may not get more than [`LIMIT`] of memory it can write to (RLIMIT_DATA: heap, mappings, stacks, touched or not), so that
//! it ends where the kernel would have killed it, rather earlier; of that it fills [`KEPT`] before, which is what it may know of a
//! cluster at most. What it took is its peak of resident memory.

#![allow(clippy::print_stderr, reason = "what a wave takes is a result, shown with --nocapture")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use drawbridge::server::descriptors;
use drawbridge::server::listener::{Limits, tls};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::http2::{DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, SETTINGS, frame, head};
use super::support::{Client, PATH, PATIENCE, Peer, post, review, start_deciding, turn};

const MIB: usize = 1024 * 1024;
const LIMIT: usize = 256 * MIB;
const KEPT: usize = 96 * MIB;
const ACK: u8 = 1;
/// For how long answers wait in there for clients that do not take them.
const WRITE: Duration = Duration::from_secs(3);
/// Tells this program to be the process that is flooded.
const FLOODED: &str = "DRAWBRIDGE_TEST_FLOODED";

/// Not a test but the process that the test below starts: it serves until its input ends.
#[test]
fn the_process_that_is_flooded() {
    if std::env::var_os(FLOODED).is_none() {
        return;
    }
    let limit = Some(LIMIT as u64);
    setrlimit(Resource::Data, Rlimit { current: limit, maximum: limit }).unwrap();
    let kept = vec![1_u8; KEPT];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        descriptors::raise();
        let certain = |certificate| tls::server_config(certificate).unwrap();
        let limits = Limits { write: WRITE, ..Limits::default() };
        let running = start_deciding(limits, certain, |reviews| reviews);
        let root: String = running.root.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(std::io::stdout(), "\nlistening {} {root}", running.address).unwrap();
        let until = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        until.await.unwrap().unwrap();
    });
    assert_eq!(kept.iter().map(|byte| usize::from(*byte)).sum::<usize>(), KEPT);
}

struct Flooded {
    process: Child,
    peer: Peer,
    /// Kept open: the harness in there says something after a minute.
    _said: BufReader<ChildStdout>,
}

impl Drop for Flooded {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Flooded {
    fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "server_faults::flood::the_process_that_is_flooded", "--nocapture"])
            .env(FLOODED, "1")
            // What is shipped has another allocator; this one is told to give back what is freed, as that one does.
            .envs([("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "65536")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let line = said.by_ref().lines().map_while(Result::ok).find(|line| line.starts_with("listening "));
        let line = line.expect("it serves");
        let mut words = line.split(' ').skip(1);
        let address = words.next().unwrap().parse().unwrap();
        let hex = words.next().unwrap().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let root: Vec<u8> = hex.chunks(2).map(byte).collect();
        Self { process, peer: Peer { address, root: root.into() }, _said: said }
    }

    fn proc(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.process.id())
    }

    /// The peak of resident memory since the last call, in bytes.
    fn peak(&self) -> usize {
        let status = std::fs::read_to_string(self.proc("status")).expect("it has not ended");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has not ended");
        let peak = line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024;
        // Where the kernel forgets no peak, the largest so far is told again.
        let _ = std::fs::write(self.proc("clear_refs"), "5");
        peak
    }

    /// Reviews on a connection that exists, and each on one of its own.
    async fn serves(&self, old: &mut Client) {
        for _ in 0..25 {
            assert_eq!(old.review("old").await.unwrap().0, 200);
            self.peer.healthy().await;
        }
    }

    fn tell(&self, wave: &str) {
        let peak = self.peak();
        eprintln!("| {wave} | {:.1} |", (peak - KEPT) as f64 / MIB as f64);
        assert!(peak <= LIMIT, "{wave}: {} KiB", peak / 1024);
    }
}

fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, 10 + u8::try_from(number % 8).unwrap())
}

/// One header of HPACK, neither indexed nor compressed.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        let mut rest = text.len();
        if rest < 127 {
            bytes.push(u8::try_from(rest).unwrap());
        } else {
            bytes.push(127);
            rest -= 127;
            while rest >= 128 {
                bytes.push(u8::try_from(rest % 128).unwrap() | 128);
                rest /= 128;
            }
            bytes.push(u8::try_from(rest).unwrap());
        }
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// A head of 8 KiB.
fn long_head() -> Vec<u8> {
    [head(), literal("x-long", &"x".repeat(8_000))].concat()
}

/// Reads until the server has answered a PING, which it does in order; or until it has ended.
async fn seen<S: AsyncReadExt + AsyncWriteExt + Unpin>(stream: &mut S) -> std::io::Result<()> {
    stream.write_all(&frame(PING, 0, 0, &[7; 8])).await?;
    stream.flush().await?;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await?;
        let length = usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2]);
        stream.read_exact(&mut vec![0; length]).await?;
        if header[3] == PING && header[4] == ACK {
            return Ok(());
        }
    }
}

/// 64 streams, each with a long head and a body that is not whole.
async fn streams(stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await?;
    for id in (1..128).step_by(2) {
        let piece = frame(DATA, 0, id, &[b' '; 2_000]);
        stream.write_all(&[frame(HEADERS, END_HEADERS, id, &long_head()), piece.clone(), piece].concat()).await?;
    }
    seen(stream).await
}

/// 64 whole reviews, of which no answer is ever let through: the window of every stream is nothing, and every PING is answered. A
/// connection like that has carried valid reviews, so that it is not ended for others' sake.
async fn unread(stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
    const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, NO_WINDOW)].concat()).await?;
    let body = review("unread");
    for id in (1..128).step_by(2) {
        let whole = frame(DATA, END_STREAM, id, body.as_bytes());
        stream.write_all(&[frame(HEADERS, END_HEADERS, id, &head()), whole].concat()).await?;
    }
    seen(stream).await
}

/// Reads what comes until the server ends it, and answers what it asks.
async fn stays(stream: &mut TlsStream<TcpStream>) {
    loop {
        let mut header = [0; 9];
        if stream.read_exact(&mut header).await.is_err() {
            return;
        }
        let length = usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2]);
        let mut payload = vec![0; length];
        let answered = stream.read_exact(&mut payload).await.is_ok()
            && (header[3] != PING || stream.write_all(&frame(PING, ACK, 0, &payload)).await.is_ok());
        if !answered {
            return;
        }
    }
}

/// The largest review there may be.
fn largest() -> Vec<u8> {
    let mut body = review("large").replace(
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"labels":{"kagenti.io/type":"agent"}},"spec":{"containers":[{"name":"a","env":[ENV]}]}}"#,
    );
    let one = r#"{"name":"A"},"#;
    let count = (7 * MIB - body.len()) / one.len();
    body = body.replace("ENV", one.repeat(count).trim_end_matches(','));
    post(&body)
}

async fn large(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await?;
    stream.read_exact(&mut [0; 12]).await?;
    Ok(())
}

/// What one hostile connection does.
#[derive(Debug, Clone, Copy)]
enum Hostile {
    Streams,
    Head,
    Large,
    Unread,
}

/// `count` of them at once, from eight addresses; those that were not ended stay open.
async fn attack(peer: &Peer, hostile: Hostile, count: usize) -> Vec<TlsStream<TcpStream>> {
    let largest = Arc::new(if matches!(hostile, Hostile::Large) { largest() } else { Vec::new() });
    let mut all = JoinSet::new();
    for number in 0..count {
        let (peer, largest) = (peer.clone(), largest.clone());
        all.spawn(async move {
            let alpn = if matches!(hostile, Hostile::Streams | Hostile::Unread) { "h2" } else { "http/1.1" };
            let mut stream = peer.connect_from(address(number), alpn).await.ok()?;
            let done = match hostile {
                Hostile::Streams => streams(&mut stream).await,
                Hostile::Unread => unread(&mut stream).await,
                Hostile::Large => large(&mut stream, &largest).await,
                Hostile::Head => {
                    let head = format!("POST {PATH} HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(15 * 1024));
                    stream.write_all(head.as_bytes()).await
                }
            };
            done.is_ok().then_some(stream)
        });
    }
    timeout(PATIENCE, all.join_all()).await.expect("sent or ended").into_iter().flatten().collect()
}

/// `count` handshakes that end in the middle of a hello of 60 KiB.
async fn hellos(peer: &Peer, count: usize) -> Vec<TcpStream> {
    let mut message = vec![1, 0, 0xf0, 0];
    message.resize(60 * 1024, 7);
    let records = message.chunks(16_000).flat_map(|part| {
        let length = u16::try_from(part.len()).unwrap().to_be_bytes();
        [&[22, 3, 1, length[0], length[1]], part].concat()
    });
    let records: Arc<Vec<u8>> = Arc::new(records.collect());
    let mut all = JoinSet::new();
    for number in 0..count {
        let (address, to, records) = (address(number), peer.address, records.clone());
        all.spawn(async move {
            let socket = TcpSocket::new_v4().ok()?;
            socket.bind((address, 0).into()).ok()?;
            let mut stream = socket.connect(to).await.ok()?;
            stream.write_all(&records).await.ok()?;
            Some(stream)
        });
    }
    timeout(PATIENCE, all.join_all()).await.expect("sent or ended").into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_04_ten_thousand_hostile_streams_fit_into_256_mib_and_a_healthy_client_is_served() {
    let _turn = turn().await;
    descriptors::raise();
    let flooded = Flooded::start();
    let mut old = Client::new(&flooded.peer).await;
    flooded.serves(&mut old).await;
    eprintln!("| what | peak beside what is known of the cluster, MiB |");
    flooded.tell("a few reviews");

    for (wave, hostile, count) in [
        ("160 connections of 64 HTTP/2 streams", Hostile::Streams, 160),
        ("2,000 heads that are not whole", Hostile::Head, 2_000),
        ("16 reviews of 7 MiB", Hostile::Large, 16),
    ] {
        let open = attack(&flooded.peer, hostile, count).await;
        flooded.serves(&mut old).await;
        flooded.tell(wave);
        drop(open);
    }

    // They have carried valid reviews and hold what there is; whoever else asks is served as soon as their time is over.
    let open = attack(&flooded.peer, Hostile::Unread, 160).await;
    assert!(open.len() > 20, "{} of 160 are there", open.len());
    let mut all = JoinSet::new();
    for mut stream in open {
        all.spawn(async move { stays(&mut stream).await });
    }
    timeout(WRITE * 10, all.join_all()).await.expect("who takes no answer is ended, whatever else he does");
    flooded.tell("160 connections of 64 answers that are not taken");
    flooded.serves(&mut Client::new(&flooded.peer).await).await;

    let open = hellos(&flooded.peer, 3_000).await;
    flooded.serves(&mut old).await;
    flooded.tell("3,000 hellos that are not whole");
    drop(open);
}
