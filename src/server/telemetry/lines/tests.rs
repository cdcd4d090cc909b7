//! Lines as tracing writes them, whole, in order, and none lost at the end.

use std::io;
use std::sync::mpsc;

use serde_json::Value;

use super::*;

/// A log that keeps what is written; can be made to wait.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn lines(&self) -> Vec<Value> {
        let bytes = self.0.lock();
        let text = std::str::from_utf8(&bytes).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

const LINE: Reviewed<'_> = Reviewed {
    is_news: true,
    webhook: "/mutate",
    uid: "a \"quoted\" uid\n",
    namespace: "team1",
    name: "weather-",
    generate_name: "weather-",
    owner: "ReplicaSet/weather",
    kind: "Pod",
    dry_run: true,
    allowed: false,
    reason: "HostNetwork",
    warnings: 2,
    operations: 17,
    micros: 48,
};

#[test]
fn a_line_says_what_tracing_would_say() {
    let (by_hand, traced) = (Kept::default(), Kept::default());
    let lines = Lines::start(by_hand.clone()).unwrap();
    lines.push(&LINE);
    lines.finish();
    let writer = traced.clone();
    let format = tracing_subscriber::fmt().with_writer(move || writer.clone()).json();
    let subscriber = format.flatten_event(true).with_current_span(false).with_span_list(false).finish();
    tracing::subscriber::with_default(subscriber, || LINE.trace());
    let (mut by_hand, mut traced) = (by_hand.lines(), traced.lines());
    for line in by_hand.iter_mut().chain(&mut traced) {
        let time = line["timestamp"].take();
        assert!(time.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{time}");
        assert_eq!(time.as_str().unwrap().len(), "2026-11-21T10:00:00.123456Z".len(), "{time}");
    }
    assert_eq!(by_hand.len(), 1);
    assert_eq!(by_hand, traced);
}

#[test]
fn nothing_is_lost_at_the_end_and_order_holds() {
    let kept = Kept::default();
    let lines = Lines::start(kept.clone()).unwrap();
    for micros in 0..10_000 {
        lines.push(&Reviewed { micros, ..LINE });
    }
    lines.finish();
    let seen: Vec<u64> = kept.lines().iter().map(|line| line["micros"].as_u64().unwrap()).collect();
    assert_eq!(seen, (0..10_000).collect::<Vec<_>>());
}

/// A log whose reader has stopped reading until it is told to go on.
struct Stuck(mpsc::Receiver<()>, Kept);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Once the other end is gone, it goes on at once.
        let _ = self.0.recv();
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_log_that_nobody_reads_neither_blocks_nor_grows() {
    let kept = Kept::default();
    let (go, wait) = mpsc::channel();
    let lines = Lines::start(Stuck(wait, kept.clone())).unwrap();
    let pushed = 3 * ROOM / 256;
    for _ in 0..pushed {
        lines.push(&LINE);
    }
    assert!(lines.shared.waiting.lock().bytes.len() <= ROOM);
    drop(go);
    lines.finish();
    let written = kept.lines().len();
    assert!(written > 0 && written < pushed, "{written} of {pushed}");
}
