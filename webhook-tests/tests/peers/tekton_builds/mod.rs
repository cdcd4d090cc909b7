//! Builds from end to end: `drawbridge serve` as its manifests install it, real Tekton Pipelines, and kwok as the
//! kubelet. Run by `make test-peers`.
//!
//! Cases of 19.4 are shown here on real components as far as an outside view reaches: D-1, D-5, D-6, D-9 to D-12,
//! D-13, D-14, D-16, D-20, D-22, D-27, D-28; all of them, clocks included, are proven in the controller's own tests.
//! Of 19.5: E19 is here; E1, E2 and E3 run in `tests/suites/git`, E7, C18 and C19 in `tests/peers/tekton`, E4 in the library's tests
//! of the scripts. What is left, and what it would take: E5, E6, E8, E14, E16, E17 need a kubelet with images, uids and a
//! registry; E9–E13, E15 and E18 also the scanners' and cosign's images with their data.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a test says what is wrong by panicking")]

mod absence;
mod beeai;
mod canary;
mod crowd;
mod demo;
mod outcomes;
mod rulings;
mod stage;
