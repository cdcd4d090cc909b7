//! The vocabulary: names, keys, reason codes. No Kubernetes client, no wire formats, no I/O.

pub mod bounds;
pub mod digest;
pub mod keys;
pub mod mode;
pub mod namespace_switch;
pub mod otlp;
pub mod period;
pub mod printable;
pub mod quantity;
pub mod quarantine;
pub mod reason;
pub mod refused_pods;
pub mod resign;
pub mod suggest;
pub mod trust;
pub mod userinfo;
pub mod workload;
pub mod written;
