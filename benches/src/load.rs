//! The load: reviews sent one after the other over keep-alive connections, by threads that do nothing else.
//!
//! In: an address, a review, how many connections and requests. Out: how long each answer took. Blocking sockets and
//! a reader of just enough HTTP/1.1, so that the client takes as little of the machine as it can.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustls::{ClientConnection, StreamOwned};

use crate::tls::Trust;
use drawbridge_counts::fixture::Review;

/// Where reviews go.
#[derive(Debug, Clone)]
pub struct Target {
    /// Address of the server.
    pub address: SocketAddr,
    /// Path and query.
    pub path: String,
    /// How the server proves itself.
    pub trust: Trust,
}

/// One keep-alive connection.
pub struct Connection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    head: String,
    out: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects; the TLS handshake is done by the first request.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn open(target: &Target) -> Result<Self> {
        let socket = TcpStream::connect(target.address).with_context(|| target.address.to_string())?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        let session = ClientConnection::new(target.trust.config.clone(), target.trust.name.clone())?;
        let host = target.trust.name.to_str();
        // What the API server sends.
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {host}:443\r\nUser-Agent: kube-apiserver-admission\r\nAccept: application/json, \
             */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\nContent-Length: ",
            target.path
        );
        let stream = BufReader::with_capacity(64 * 1024, StreamOwned::new(session, socket));
        Ok(Self { stream, head, out: Vec::new(), answer: Vec::new() })
    }

    /// Sends `body`, and returns the whole body of the answer.
    ///
    /// # Errors
    /// When the answer is not HTTP 200, or the connection breaks.
    pub fn ask(&mut self, body: &[u8]) -> Result<&[u8]> {
        self.out.clear();
        write!(self.out, "{}{}\r\n\r\n", self.head, body.len())?;
        self.out.extend_from_slice(body);
        self.stream.get_mut().write_all(&self.out)?;
        let (mut length, mut chunked) = (None, false);
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let ok = line.starts_with("HTTP/1.1 200");
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the connection was closed");
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse::<usize>()?);
            }
            chunked |= name.eq_ignore_ascii_case("transfer-encoding");
        }
        self.answer.clear();
        if chunked {
            while self.chunk(&mut line)? {}
        } else {
            self.take(length.context("an answer of unknown length")?)?;
        }
        if !ok {
            bail!("the answer is no 200: {}", String::from_utf8_lossy(&self.answer));
        }
        Ok(&self.answer)
    }

    /// Takes a chunk, which Go sends for all but small answers; false at the last.
    fn chunk(&mut self, line: &mut String) -> Result<bool> {
        line.clear();
        self.stream.read_line(line)?;
        let length = usize::from_str_radix(line.trim(), 16).context("the length of a chunk")?;
        self.take(length)?;
        line.clear();
        self.stream.read_line(line)?;
        Ok(length > 0)
    }

    fn take(&mut self, length: usize) -> Result<()> {
        let begin = self.answer.len();
        self.answer.resize(begin + length, 0);
        Ok(self.stream.read_exact(&mut self.answer[begin..])?)
    }
}

/// Asks `requests` times in all over `connections` connections, each opened and warmed up before the first is timed;
/// returns each answer's time, sorted. `between` is called when all are warm, and once more at the end.
///
/// # Errors
/// At the first request that is not answered.
pub fn drive(
    target: &Target,
    review: &Review,
    connections: usize,
    requests: usize,
    mut between: impl FnMut(),
) -> Result<Vec<Duration>> {
    let warm = std::sync::Barrier::new(connections + 1);
    let go = std::sync::Barrier::new(connections + 1);
    let each = requests / connections;
    let times = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|_| {
                let (warm, go, mut review) = (&warm, &go, review.clone());
                scope.spawn(move || {
                    let connected = Connection::open(target).and_then(|mut connection| {
                        for number in 0..5 {
                            connection.ask(review.numbered(number))?;
                        }
                        Ok(connection)
                    });
                    // Also after an error: the others wait.
                    warm.wait();
                    go.wait();
                    let mut connection = connected?;
                    let mut times = Vec::with_capacity(each);
                    for number in 0..each {
                        let body = review.numbered(number as u64);
                        let began = Instant::now();
                        connection.ask(body)?;
                        times.push(began.elapsed());
                    }
                    Ok(times)
                })
            })
            .collect();
        warm.wait();
        between();
        go.wait();
        let ended: Vec<Result<Vec<Duration>>> =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| bail!("a client panicked"))).collect();
        between();
        ended.into_iter().collect::<Result<Vec<_>>>()
    })?;
    let mut all = times.concat();
    all.sort_unstable();
    Ok(all)
}
