//! What the controller of tools remembers: a note of each MCPServer; pure.

use std::time::Duration;

use crate::controllers::scaffold::controller::Controller;

/// The controller of which tools an MCPServer offers.
#[derive(Debug, Clone, Copy)]
pub struct Discovery;

/// What a plan found out about its item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Note {
    /// When it is asked for the first time in this term.
    pub first: Option<Duration>,
}

impl Controller for Discovery {
    type Note = Note;
    type Memory = ();
}
