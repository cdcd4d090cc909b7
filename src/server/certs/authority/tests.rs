//! Tables for the plan, and the cryptography behind it checked with the verifier that clients use.

mod plans;
mod real;
mod refused;
mod simulation;

use super::plan::{Authority, Lifetimes};
use crate::server::certs::root::{Fingerprint, Millis, Root};

const DAY: Millis = 86_400_000;

/// An authority without cryptography: decisions need no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fake(Root);

impl Authority for Fake {
    type Retired = Fake;

    fn root(&self) -> Root {
        self.0
    }

    fn retire(&self) -> Fake {
        *self
    }

    fn retired_root(retired: &Fake) -> Root {
        retired.0
    }
}

impl Fake {
    fn issued(id: u32, at: Millis, lifetimes: &Lifetimes) -> Fake {
        Fake(Root {
            fingerprint: Fingerprint::of(&id.to_be_bytes()),
            not_before: at - lifetimes.backdate,
            not_after: at + lifetimes.authority,
        })
    }
}
