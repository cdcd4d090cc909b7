//! What the controller of cards remembers: a note of each; pure.

use super::note::Note;
use super::question::CardQuestion;
use crate::controllers::scaffold::controller::Controller;
use crate::controllers::scaffold::plan;
use crate::controllers::scaffold::signing::Signing;

/// The controller of what agents say of themselves.
#[derive(Debug, Clone, Copy)]
pub struct Cards;

/// What its plans are made from.
pub(super) type Context<'a> = plan::Context<'a, Cards>;
/// What it plans.
pub(super) type Plan = plan::Plan<Note>;
/// What it plans, and asks.
pub(super) type Asked = plan::Asked<CardQuestion, Note>;

impl Controller for Cards {
    type Note = Note;
    type Memory = ();

    fn signing(note: &Note) -> Option<&Signing> {
        note.signing.as_ref()
    }
}
