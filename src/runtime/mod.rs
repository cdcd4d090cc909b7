//! Process machinery: sockets, certificates, watches, leadership, telemetry.
