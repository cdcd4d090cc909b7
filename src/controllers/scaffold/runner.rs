//! What the loop drives: a controller of the table, whatever it asks of the world.
//!
//! In: a row, and for one that asks, whoever answers. Out: one shape for the loop. Promise: the loop knows no controller's questions, and a
//! controller without any costs nothing more than its functions.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::lane::{Adapter, Lane, Question};
use super::memory::Memory;
use super::metrics::ControllerMetrics;
use super::plan::{AskingRow, Context, Controller, Item, Plan, Row};
use crate::store::{Key, Kind, Store};

/// What a controller is started with.
#[derive(Clone)]
pub struct Start {
    /// When the clock of the plans began.
    pub base: Instant,
    /// Takes the items about which something else is known now.
    pub woken: mpsc::UnboundedSender<Item>,
    /// Counters.
    pub metrics: ControllerMetrics,
}

/// One controller in the loop.
pub trait Runner: Send {
    /// Which.
    fn controller(&self) -> Controller;
    /// Before anything else, once.
    fn start(&mut self, start: Start);
    /// The items that a change of an object may concern.
    fn touched(&self, store: &Store, memory: &Memory, kind: Kind, key: &Key) -> Vec<Key>;
    /// The items of one namespace.
    fn of_namespace(&self, store: &Store, namespace: &str) -> Vec<Key>;
    /// What to do about one item.
    fn plan(&self, cx: Context<'_>) -> Plan;
    /// A term of leadership begins or ends.
    fn forget(&self);
}

impl Runner for Row {
    fn controller(&self) -> Controller {
        self.controller
    }

    fn start(&mut self, _: Start) {}

    fn touched(&self, store: &Store, memory: &Memory, kind: Kind, key: &Key) -> Vec<Key> {
        (self.touched)(store, memory, kind, key)
    }

    fn of_namespace(&self, store: &Store, namespace: &str) -> Vec<Key> {
        (self.of_namespace)(store, namespace)
    }

    fn plan(&self, cx: Context<'_>) -> Plan {
        (self.plan)(cx)
    }

    fn forget(&self) {}
}

/// A controller that asks, with whom it asks.
pub struct Asking<Q: Question, A> {
    row: AskingRow<Q>,
    adapter: Arc<A>,
    lane: Option<Lane<Q>>,
}

impl<Q: Question, A: Adapter<Q>> Asking<Q, A> {
    /// That row, answered by that adapter.
    pub fn new(row: AskingRow<Q>, adapter: A) -> Self {
        Self { row, adapter: Arc::new(adapter), lane: None }
    }
}

impl<Q: Question, A: Adapter<Q>> Runner for Asking<Q, A> {
    fn controller(&self) -> Controller {
        self.row.controller
    }

    fn start(&mut self, start: Start) {
        let Start { base, woken, metrics } = start;
        self.lane = Some(Lane::start(self.row.controller, self.adapter.clone(), base, woken, metrics));
    }

    fn touched(&self, store: &Store, memory: &Memory, kind: Kind, key: &Key) -> Vec<Key> {
        (self.row.touched)(store, memory, kind, key)
    }

    fn of_namespace(&self, store: &Store, namespace: &str) -> Vec<Key> {
        (self.row.of_namespace)(store, namespace)
    }

    fn plan(&self, cx: Context<'_>) -> Plan {
        // Not started: nobody would answer, and nothing is planned on a guess.
        let Some(lane) = &self.lane else { return Plan::nothing() };
        lane.plan(cx.key, cx.now, |facts| (self.row.plan)(cx, facts))
    }

    fn forget(&self) {
        if let Some(lane) = &self.lane {
            lane.forget();
        }
    }
}
