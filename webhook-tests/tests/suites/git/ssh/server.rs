//! An SSH server that does one thing: for whoever has the one key it knows, it runs `git-upload-pack` on a repository
//! below a folder.
//!
//! curve25519-sha256, ssh-ed25519, aes128-gcm; RFC 4252 (publickey), 4253, 4254, 8731. It is the test's peer, not
//! anybody's server: no rekeying, one channel, and what it does not expect ends the connection.

use std::io::{Error, Result};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use aws_lc_rs::agreement::{EphemeralPrivateKey, UnparsedPublicKey as Peer, X25519, agree_ephemeral};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::wire::{Cipher, In, Out, Receiver, Sender, mpint, strings};

const NAME: &str = "SSH-2.0-test";
const KIND: &[u8] = b"ssh-ed25519";
/// What the client may send before it is told more, and what it may send at once.
const WINDOW: u32 = 16 * 1024 * 1024;

/// An Ed25519 key.
pub(crate) struct Key {
    pair: Ed25519KeyPair,
    seed: [u8; 32],
}

impl Key {
    pub(crate) fn generate() -> Self {
        let mut seed = [0; 32];
        aws_lc_rs::rand::fill(&mut seed).unwrap();
        Self { pair: Ed25519KeyPair::from_seed_unchecked(&seed).unwrap(), seed }
    }

    /// The public half, as SSH writes it.
    fn blob(&self) -> Vec<u8> {
        strings(&[KIND, self.pair.public_key().as_ref()])
    }

    /// The line of a `known_hosts` file, without the host.
    pub(crate) fn line(&self) -> String {
        format!("ssh-ed25519 {}", STANDARD.encode(self.blob()))
    }

    /// The private half as `ssh` reads it: `openssh-key-v1` without a passphrase.
    pub(crate) fn private(&self) -> String {
        let public = self.pair.public_key().as_ref();
        let pair = [&self.seed[..], public].concat();
        // The same number twice shows that decryption went well.
        let mut private = [&[7; 8][..], &strings(&[KIND, public, &pair, b"test"])].concat();
        let padding = (1..=8).take((8 - private.len() % 8) % 8);
        private.extend(padding);
        let head = [&b"openssh-key-v1\0"[..], &strings(&[b"none", b"none", b""]), &1u32.to_be_bytes()].concat();
        let text = STANDARD.encode([head, strings(&[&self.blob(), &private])].concat());
        let lines: Vec<_> = text.as_bytes().chunks(70).map(|line| String::from_utf8_lossy(line)).collect();
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n", lines.join("\n"))
    }
}

/// What happened at a server, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A client took the host's key for the right one.
    Trusted,
    /// Somebody who has not the key.
    Refused(String),
    /// Somebody who has it.
    Entered(String),
    /// A command.
    Ran(String),
}

/// A server on a free port.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

struct House {
    host: Key,
    /// The public half that opens the door.
    admitted: Vec<u8>,
    root: PathBuf,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) async fn start(host: Key, admitted: &Key, root: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (port, seen) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let house = House { host, admitted: admitted.blob(), root: root.to_owned(), seen: Arc::clone(&seen) };
        let house = Arc::new(house);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let house = Arc::clone(&house);
                // A client that goes away ends its connection, as it should.
                tokio::spawn(async move { drop(house.serve(stream).await) });
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("ssh://git@localhost:{}/agents.git", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }
}

fn over() -> Error {
    Error::other("the connection is over")
}

struct Connection {
    receiver: Receiver<BufReader<OwnedReadHalf>>,
    sender: Sender<OwnedWriteHalf>,
}

impl Connection {
    /// The next packet that means something.
    async fn next(&mut self) -> Result<Vec<u8>> {
        loop {
            let packet = self.receiver.packet().await?;
            match packet[0] {
                1 => return Err(over()),
                // Ignore, unimplemented, debug, extension info.
                2..=4 | 7 => {}
                _ => return Ok(packet),
            }
        }
    }
}

impl House {
    fn note(&self, seen: Seen) {
        self.seen.lock().push(seen);
    }

    async fn serve(&self, stream: TcpStream) -> Result<()> {
        let (read, write) = stream.into_split();
        let receiver = Receiver { stream: BufReader::new(read), cipher: None };
        let mut connection = Connection { receiver, sender: Sender { stream: write, cipher: None } };
        let session = self.exchange(&mut connection).await?;
        self.authenticate(&mut connection, &session).await?;
        self.channel(connection).await
    }

    /// Agrees on keys; gives the session's id.
    async fn exchange(&self, connection: &mut Connection) -> Result<Vec<u8>> {
        connection.sender.stream.write_all(format!("{NAME}\r\n").as_bytes()).await?;
        let mut name = String::new();
        connection.receiver.stream.read_line(&mut name).await?;
        let cipher = &b"aes128-gcm@openssh.com"[..];
        let (mac, none) = (&b"hmac-sha2-256"[..], &b"none"[..]);
        let lists = strings(&[b"curve25519-sha256", KIND, cipher, cipher, mac, mac, none, none, b"", b""]);
        let offer = Out([&[20][..], &[0; 16], &lists, &[0; 5]].concat());
        connection.sender.packet(&offer).await?;
        let asked = connection.next().await?;
        let init = connection.next().await?;
        let mut fields = In(&init);
        if (asked[0], fields.byte()?) != (20, 30) {
            return Err(over());
        }
        let theirs = fields.string()?;
        let secret = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(Error::other)?;
        let ours = secret.compute_public_key().map_err(Error::other)?;
        let shared = agree_ephemeral(secret, Peer::new(&X25519, theirs), over(), |bytes| Ok(mpint(bytes)))?;
        let blob = self.host.blob();
        let said =
            strings(&[name.trim_end().as_bytes(), NAME.as_bytes(), &asked, &offer.0, &blob, theirs, ours.as_ref()]);
        let hash = digest(&SHA256, &[said, shared.clone()].concat()).as_ref().to_vec();
        let signature = strings(&[KIND, self.host.pair.sign(&hash).as_ref()]);
        connection.sender.packet(&Out::new(31).string(&blob).string(ours.as_ref()).string(&signature)).await?;
        connection.sender.packet(&Out::new(21)).await?;
        if connection.next().await? != [21] {
            return Err(over());
        }
        let key = |letter: u8| digest(&SHA256, &[&shared[..], &hash, &[letter], &hash].concat()).as_ref().to_vec();
        connection.receiver.cipher = Some(Cipher::new(&key(b'C')[..16], &key(b'A')[..12]));
        connection.sender.cipher = Some(Cipher::new(&key(b'D')[..16], &key(b'B')[..12]));
        Ok(hash)
    }

    /// Lets in who proves to have the key.
    async fn authenticate(&self, connection: &mut Connection, session: &[u8]) -> Result<()> {
        loop {
            let packet = connection.next().await?;
            let mut fields = In(&packet);
            match fields.byte()? {
                5 => {
                    self.note(Seen::Trusted);
                    connection.sender.packet(&Out::new(6).string(fields.string()?)).await?;
                }
                50 => {
                    let user = String::from_utf8_lossy(fields.string()?).into_owned();
                    let (_, method) = (fields.string()?, fields.string()?);
                    if method == b"publickey" {
                        let (signed, kind, blob) = (fields.byte()? == 1, fields.string()?, fields.string()?);
                        if kind == KIND && blob == self.admitted && !signed {
                            connection.sender.packet(&Out::new(60).string(kind).string(blob)).await?;
                            continue;
                        }
                        let covered = &packet[..packet.len() - fields.0.len()];
                        if blob == self.admitted && proves(blob, &[&strings(&[session])[..], covered].concat(), fields)?
                        {
                            self.note(Seen::Entered(user));
                            return connection.sender.packet(&Out::new(52)).await;
                        }
                        self.note(Seen::Refused(user));
                    }
                    connection.sender.packet(&Out::new(51).string(b"publickey").byte(0)).await?;
                }
                _ => return Err(over()),
            }
        }
    }

    /// The one channel: environment, command, its streams, its end.
    async fn channel(&self, mut connection: Connection) -> Result<()> {
        let mut theirs = 0;
        let mut protocol = None;
        let command = loop {
            let packet = connection.next().await?;
            let mut fields = In(&packet);
            match fields.byte()? {
                // Nothing global is known here.
                80 => {
                    fields.string()?;
                    if fields.byte()? == 1 {
                        connection.sender.packet(&Out::new(82)).await?;
                    }
                }
                90 => {
                    fields.string()?;
                    theirs = fields.number()?;
                    let opened = Out::new(91).number(theirs).number(0).number(WINDOW).number(32 * 1024);
                    connection.sender.packet(&opened).await?;
                }
                98 => {
                    fields.number()?;
                    let (what, reply) = (fields.string()?.to_vec(), fields.byte()? == 1);
                    let known = match &what[..] {
                        b"env" if fields.string()? == b"GIT_PROTOCOL" => {
                            protocol = Some(String::from_utf8_lossy(fields.string()?).into_owned());
                            true
                        }
                        b"exec" => true,
                        _ => false,
                    };
                    if reply {
                        connection.sender.packet(&Out::new(if known { 99 } else { 100 }).number(theirs)).await?;
                    }
                    if what == b"exec" {
                        break String::from_utf8_lossy(fields.string()?).into_owned();
                    }
                }
                _ => return Err(over()),
            }
        };
        self.note(Seen::Ran(command.clone()));
        let path =
            command.strip_prefix("git-upload-pack '/").and_then(|rest| rest.strip_suffix('\'')).ok_or_else(over)?;
        let mut git = tokio::process::Command::new("git");
        git.arg("upload-pack").arg(self.root.join(path)).stdin(Stdio::piped()).stdout(Stdio::piped());
        git.envs(protocol.map(|version| ("GIT_PROTOCOL", version)));
        carried(connection, theirs, git).await
    }
}

/// Whether a signature over `covered` is by the key.
fn proves(blob: &[u8], covered: &[u8], mut fields: In<'_>) -> Result<bool> {
    let mut signature = In(fields.string()?);
    let (kind, bytes) = (signature.string()?, signature.string()?);
    let mut key = In(blob);
    key.string()?;
    Ok(kind == KIND && UnparsedPublicKey::new(&ED25519, key.string()?).verify(covered, bytes).is_ok())
}

/// Runs a command on a channel until it ends.
async fn carried(connection: Connection, theirs: u32, mut command: tokio::process::Command) -> Result<()> {
    let Connection { mut receiver, mut sender } = connection;
    let mut child = command.kill_on_drop(true).spawn()?;
    let (mut input, mut output) = (child.stdin.take(), child.stdout.take().ok_or_else(over)?);
    // Reading a packet must not be given up halfway, so it has a task of its own.
    let (packets, mut arrived) = mpsc::channel(16);
    let reading = tokio::spawn(async move {
        while let Ok(packet) = receiver.packet().await {
            if packets.send(packet).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = vec![0; 16 * 1024];
    loop {
        tokio::select! {
            packet = arrived.recv() => {
                let packet = packet.ok_or_else(over)?;
                let mut fields = In(&packet);
                match fields.byte()? {
                    94 => {
                        fields.number()?;
                        // A command that has ended reads nothing more; what it said is still carried.
                        if let Some(pipe) = &mut input
                            && pipe.write_all(fields.string()?).await.is_err()
                        {
                            input = None;
                        }
                    }
                    96 => input = None,
                    97 | 1 => return Ok(()),
                    _ => {}
                }
            }
            count = output.read(&mut buffer) => match count? {
                0 => break,
                // A client's window is 2 MiB; the repositories of the tests are smaller.
                count => sender.packet(&Out::new(94).number(theirs).string(&buffer[..count])).await?,
            },
        }
    }
    drop(input);
    let code = child.wait().await?.code().unwrap_or(255);
    sender.packet(&Out::new(96).number(theirs)).await?;
    let status = Out::new(98).number(theirs).string(b"exit-status").byte(0).number(u32::try_from(code).unwrap_or(255));
    sender.packet(&status).await?;
    sender.packet(&Out::new(97).number(theirs)).await?;
    // The client says goodbye; then nothing is cut off.
    while arrived.recv().await.is_some_and(|packet| packet[0] != 97) {}
    reading.abort();
    Ok(())
}
