//! Agent cards: what agents say of themselves, whether it is signed, and by whom.

pub mod judge;
