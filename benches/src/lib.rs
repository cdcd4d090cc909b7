//! What `make bench` measures, and with what: fixtures, the peers, the load, the rows of the table.

pub mod counts;
pub mod cpu;
pub mod echo;
pub mod fixture;
pub mod instructions;
pub mod load;
pub mod offline;
pub mod peers;
pub mod run;
pub mod stamp;
pub mod table;
pub mod tls;
