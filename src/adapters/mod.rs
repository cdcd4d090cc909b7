//! What asks others than the API server. In: a question of a controller's plan. Out: a fact, or why there is none.
//!
//! Promises: one HTTP client for everything that goes out ([`http`]), which connects to given addresses only; every answer is bounded
//! in bytes and in time; nothing that somebody answered stands in an error unescaped or at length. An SVID is asked for at a Unix socket
//! ([`spiffe`]); whom a TLS client believes by a rule of its own, one type says ([`tls`]).

pub mod card;
pub mod http;
pub mod spiffe;
pub mod tls;
pub mod tools;
