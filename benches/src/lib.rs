//! What `make bench` measures, and with what: the peers, the load, the rows of the table. The reviews are those of
//! `drawbridge_counts::fixture`.

pub mod cpu;
pub mod echo;
pub mod load;
pub mod offline;
pub mod peers;
pub mod run;
pub mod stamp;
pub mod table;
pub mod tls;
