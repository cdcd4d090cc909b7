//! Rows A, B, C7 and D1 of the fault list over real sockets and real TLS: the router and the listener as `serve` uses
//! them, each test with its own port on loopback.

mod flood;
mod http2;
mod lifecycle;
mod mutual;
mod requests;
mod slow;
mod support;
mod tls;
