//! `github-clone-step` against real Git servers: `git` itself, over TLS and over ssh (E1, E2, E3 of 19.5, as far as they
//! need no kubelet).
//!
//! In: the script of the shipped step, in a shell, with the environment that Tekton would give it. Out: a checked-out
//! tree. The credential must reach the server and nothing else.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a test says what is wrong by panicking")]

mod clone;
mod https;
mod ssh;
