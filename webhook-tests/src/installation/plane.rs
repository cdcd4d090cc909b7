//! A control plane for [`Installation::start`](super::Installation::start) that goes on to the next test.
//!
//! In: what a control plane is made of. Out: one that holds the manifests, for one test at a time. A test that leaves the processes alone gives
//! it back when it drops it: what the test made is taken away, what it changed is put right, and who asks next has it, in a third of the time
//! and work that a new one takes. After a panic, with options of its own, or where something stays otherwise, it ends there.
//! DRAWBRIDGE_PLANES=FILE adds a line to that file for each that is given back, and for each that is not, with the reason.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::prepared::{self, prepared};
use crate::background;
use crate::control_plane::{ControlPlane, Options};

/// Control planes that nobody has, at most; each holds a gigabyte.
const IDLE: usize = 3;

/// A control plane of a test's own; dereferences to it.
pub struct Plane(Option<ControlPlane>);

/// Those that are between two tests.
#[derive(Default)]
struct Between {
    idle: Vec<ControlPlane>,
    /// Being brought back.
    coming: usize,
    /// Tests that wait for one of those.
    waiting: usize,
}

static BETWEEN: Mutex<Between> = Mutex::new(Between { idle: Vec::new(), coming: 0, waiting: 0 });
static CAME: Notify = Notify::const_new();

/// A control plane of a test's own, for [`Installation::start`](super::Installation::start). The first of a process is empty, since who runs one
/// test would wait for two; all others hold the manifests.
///
/// # Errors
/// As [`ControlPlane::start`].
pub async fn plane(options: Options) -> Result<Plane> {
    static ANOTHER: AtomicBool = AtomicBool::new(false);
    if !ANOTHER.swap(true, Ordering::Relaxed) {
        return ControlPlane::start(options).await.map(|cp| Plane(Some(cp)));
    }
    let prepared = prepared().await?;
    if options.are_usual()
        && let Some(cp) = given_back().await
    {
        return Ok(Plane(Some(cp)));
    }
    prepared::begun(prepared, options).await.map(|cp| Plane(Some(cp)))
}

/// One that another test gave back; waits for one that is on its way.
async fn given_back() -> Option<ControlPlane> {
    {
        let mut between = BETWEEN.lock();
        if let Some(cp) = between.idle.pop() {
            return Some(cp);
        }
        if between.waiting >= between.coming {
            return None;
        }
        between.waiting += 1;
    }
    loop {
        let came = CAME.notified();
        let found = {
            let mut between = BETWEEN.lock();
            let found = between.idle.pop();
            // One that came was taken by somebody else, or ended: nobody waits for more than are on their way.
            if found.is_some() || between.waiting > between.coming {
                between.waiting -= 1;
                Some(found)
            } else {
                None
            }
        };
        match found {
            Some(found) => return found,
            None => came.await,
        }
    }
}

impl Deref for Plane {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.0.as_ref().expect("a plane is there until it is dropped")
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let Some(cp) = self.0.take().filter(|cp| !std::thread::panicking() && cp.is_as_it_came()) else { return };
        BETWEEN.lock().coming += 1;
        background::runtime().spawn(async move {
            let begun = std::time::Instant::now();
            let brought = brought_back(&cp).await;
            tell(&match &brought {
                Ok(()) => format!("control plane {} is given back after {:?}\n", cp.server(), begun.elapsed()),
                Err(error) => format!("control plane {} ends: {error:#}\n", cp.server()),
            });
            let surplus = {
                let mut between = BETWEEN.lock();
                between.coming -= 1;
                match brought {
                    Ok(()) if between.idle.len() < IDLE => {
                        between.idle.push(cp);
                        None
                    }
                    _ => Some(cp),
                }
            };
            CAME.notify_waiters();
            drop(surplus);
        });
    }
}

/// Adds the line to the file that somebody named who wants to know.
fn tell(line: &str) {
    if let Some(file) = std::env::var_os("DRAWBRIDGE_PLANES")
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file)
    {
        // A line that cannot be written is no reason to end anything.
        let _ = file.write_all(line.as_bytes());
    }
}

async fn brought_back(cp: &ControlPlane) -> Result<()> {
    let prepared = prepared::there().context("nothing was prepared")?;
    cp.back_to(&prepared.held).await?;
    cp.begins_anew(&prepared.store);
    Ok(())
}
