//! Plans as data: what a controller wants done, decided without I/O and carried out by one executor.

use std::time::Duration;

use serde_json::Value;

use super::check::Check;
use super::consent::Demand;
use super::controller::{Controller, Own};
use super::lane::{Ask, Facts, Question};
use super::login::Login;
use super::memory::Memory;
use crate::config::snapshot::Published;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Store};

/// Tells a controller from every other: the value of a label, and the last part of the field manager of its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(&'static str);

impl Name {
    /// That name. It is part of metrics and of field managers in the cluster, so it stays what it is once it was released.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Label value, and the last part of the field manager.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Field manager of its writes.
    #[must_use]
    pub fn manager(self) -> String {
        format!("drawbridge/{}", self.0)
    }
}

/// One piece of work: what a controller looks at and may write to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    /// Who.
    pub controller: Name,
    /// What; its meaning is the controller's.
    pub key: Key,
}

/// In a status: the time at which it is written.
pub const NOW: &str = "$now";
/// `metadata.resourceVersion` of an object that is to be made: an apply with it never changes one that exists.
pub const UNMADE: &str = "1";

/// One write, or one question that only a write can ask.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Creates an object; one of that name that exists already is a conflict, never adopted.
    Create {
        /// Its kind.
        kind: Kind,
        /// Its namespace.
        namespace: String,
        /// The object, without apiVersion and kind.
        body: Value,
    },
    /// Creates an object under a name that is the same whenever it is planned. One of that name that `owner` controls
    /// counts as created; somebody else's is refused as [`Reason::NameConflict`] and never touched.
    Ensure {
        /// Its kind.
        kind: Kind,
        /// Its namespace.
        namespace: String,
        /// The object, without apiVersion and kind.
        body: Value,
        /// `metadata.uid` of the object that controls it.
        owner: String,
    },
    /// Asks, by a dry-run create, whether the API server and whoever admits the kind would take the object. What
    /// exists under its name is judged as by [`Op::Ensure`]. That the object was taken is remembered by its shape.
    Try {
        /// Its kind.
        kind: Kind,
        /// Its namespace.
        namespace: String,
        /// The object, without apiVersion and kind.
        body: Value,
        /// The same text for objects that differ only in what is not judged by the kind's own rules.
        shape: String,
        /// `metadata.uid` of the object that would control it.
        owner: String,
    },
    /// Asks which keys a Secret has. Its values are passed over while its answer is read, and kept nowhere.
    Look {
        /// The Secret.
        key: Key,
    },
    /// Reads the `spec` of a Deployment, which is not kept of what is watched: what an earlier operator wrote is compared with what is wanted.
    Template {
        /// The Deployment.
        key: Key,
    },
    /// Reads one object by its name, which its watch may not show: a label brings an object there, and whoever takes it off hides it. What is there
    /// is known from then on, and that there is none.
    Find {
        /// Its kind.
        kind: Kind,
        /// Where it would be.
        key: Key,
    },
    /// Reads Secrets at this moment; each must consent to its use, or the plan ends here, refused as [`Reason::SecretNotUsable`].
    Consent {
        /// Their namespace.
        namespace: String,
        /// Which, and for what.
        demands: Vec<Demand>,
    },
    /// Makes a login of a registry from a token, or brings it up to date: one Secret is read and one is written. Nothing of the token is here.
    Login(Box<Login>),
    /// Merges into an object. `metadata.uid` in the patch makes sure that it is the one that was planned for,
    /// `metadata.resourceVersion` that nobody has changed it since.
    Merge {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: Key,
        /// The merge patch.
        patch: Value,
    },
    /// Edits parts of an object by a JSON patch, whose `test` operations name what the decision rests on. Others may
    /// write everything else of the object at any rate without costing another try.
    Edit {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: Key,
        /// The operations of RFC 6902; the first tests `metadata.uid`.
        operations: Value,
    },
    /// Deletes that very object.
    Delete {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: Key,
        /// `metadata.uid`.
        uid: String,
    },
    /// Asks, by a dry-run create, whether a Pod comes back without our scheduling gate.
    Probe {
        /// Where.
        namespace: String,
        /// The Pod.
        body: Value,
    },
    /// Server-side apply of exactly these fields to an object that exists: what is not among them any more is given
    /// up, and goes unless somebody else has it, too. The body names the uid, so that it never makes an object.
    Apply {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: Key,
        /// The fields, without apiVersion and kind.
        body: Value,
        /// The version it was planned from; not sent.
        seen: u64,
        /// What the object has to pass as it is then: it is read whole before it is written, or the plan ends here, refused.
        check: Option<Check>,
    },
    /// Server-side apply, by force, of a whole object that is the controller's own. The body names the uid of the object
    /// it is meant for, or [`UNMADE`] as the version of one that must not exist yet: somebody else's is never changed.
    Own {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: Key,
        /// Everything that is wanted of it, without apiVersion and kind.
        body: Value,
    },
    /// Merges into the status of an object. A text that is [`NOW`] becomes the present time. A condition without `lastTransitionTime` gets the present time.
    Status {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: Key,
        /// The merge patch, with uid and resourceVersion.
        patch: Value,
    },
    /// Edits parts of the status of an object by a JSON patch: what is replaced is replaced whole, and leaves nothing of what was
    /// there. A member whose name ends in `Time` and that is [`NOW`], or a null `lastTransitionTime`, gets the present time.
    Restate {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: Key,
        /// The operations of RFC 6902; the first tests `metadata.uid`, the second `metadata.resourceVersion`.
        operations: Value,
    },
    /// Evicts that very Pod, as disruption budgets allow.
    Evict {
        /// Where it is.
        key: Key,
        /// `metadata.uid`.
        uid: String,
    },
    /// Tells people, once.
    Report(Report),
}

impl Op {
    /// RBAC verb, kind, namespace.
    #[must_use]
    pub fn asks(&self) -> (&'static str, Kind, &str) {
        match self {
            Op::Create { kind, namespace, .. } => ("create", *kind, namespace),
            Op::Ensure { kind, namespace, .. } | Op::Try { kind, namespace, .. } => ("create", *kind, namespace),
            Op::Look { key } => ("get", Kind::Secret, &key.namespace),
            Op::Consent { namespace, .. } => ("get", Kind::Secret, namespace),
            Op::Template { key } => ("list", Kind::Deployment, &key.namespace),
            Op::Find { kind, key } => ("list", *kind, &key.namespace),
            Op::Login(login) => ("patch", Kind::Secret, &login.key.namespace),
            Op::Delete { kind, key, .. } => ("delete", *kind, &key.namespace),
            Op::Probe { namespace, .. } => ("create", Kind::Pod, namespace),
            Op::Merge { kind, key, .. }
            | Op::Edit { kind, key, .. }
            | Op::Apply { kind, key, .. }
            | Op::Own { kind, key, .. }
            | Op::Restate { kind, key, .. }
            | Op::Status { kind, key, .. } => ("patch", *kind, &key.namespace),
            Op::Evict { key, .. } => ("create", Kind::Pod, &key.namespace),
            Op::Report(report) => ("create", Kind::Event, &report.about.namespace),
        }
    }

    /// The same to be compared with later ones: what it was to look with is dropped.
    #[must_use]
    pub fn remembered(mut self) -> Self {
        if let Op::Apply { check: Some(check), .. } = &mut self {
            check.spend();
        }
        self
    }

    /// Carried out, it shows that what was refused before is accepted now.
    #[must_use]
    pub fn settles(&self) -> bool {
        matches!(
            self,
            Op::Apply { .. } | Op::Own { .. } | Op::Ensure { .. } | Op::Try { .. } | Op::Login(_) | Op::Create { .. }
        )
    }

    /// The subresource that is written, where it is one.
    #[must_use]
    pub fn subresource(&self) -> Option<&'static str> {
        match self {
            Op::Status { .. } | Op::Restate { .. } => Some("status"),
            Op::Evict { .. } => Some("eviction"),
            _ => None,
        }
    }
}

/// A label or annotation key as a part of the path of an operation (RFC 6901).
#[must_use]
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// An Event about one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Kind of the object.
    pub kind: Kind,
    /// The object.
    pub about: Key,
    /// Its uid.
    pub uid: String,
    /// Which reason; the Event's `reason`.
    pub reason: Reason,
    /// The facts and the way out; cut to 1,024 bytes. The Event is a warning unless the reason is a state.
    pub message: String,
    /// Since when the state held that this one ends, RFC 3339: the same may be told again when it comes again. Empty where it is
    /// told once.
    pub since: String,
}

/// What to do about one item, with a note of the controller's own type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan<N = ()> {
    /// In this order; the first failure ends the plan.
    pub ops: Vec<Op>,
    /// Look again after this time, changed or not.
    pub again: Option<Duration>,
    /// What it found out, kept until the next plan of the item.
    pub note: N,
}

impl<N: Default> Plan<N> {
    /// Nothing to do.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// These writes.
    #[must_use]
    pub fn of(ops: Vec<Op>) -> Self {
        Self { ops, ..Self::default() }
    }

    /// Nothing yet.
    #[must_use]
    pub fn later(after: Duration) -> Self {
        Self { again: Some(after), ..Self::default() }
    }
}

impl<N> Plan<N> {
    /// It ends by making the object that it is about, and asks for no other look.
    #[must_use]
    pub fn makes(&self) -> bool {
        self.again.is_none() && matches!(self.ops.last(), Some(Op::Ensure { .. }))
    }

    /// The same for whoever carries it out, and its note.
    #[must_use]
    pub fn apart(self) -> (Plan, N) {
        (Plan { ops: self.ops, again: self.again, note: () }, self.note)
    }
}

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a, C: Controller = ()> {
    /// The cluster.
    pub store: &'a Store,
    /// What is remembered of all items alike: failures, who rolls, what the API server answered.
    pub memory: &'a Memory,
    /// The configuration.
    pub facts: &'a Published,
    /// The item's key.
    pub key: &'a Key,
    /// Monotonic time, comparable with the arrival times in `store`.
    pub now: Duration,
    /// What the controller itself remembers.
    pub own: &'a Own<C>,
}

impl<'a, C: Controller> Context<'a, C> {
    /// The note of the item's last plan.
    #[must_use]
    pub fn note(&self) -> Option<&'a C::Note> {
        self.own.of(self.key)
    }
}

/// A controller, as a row of the table. Several rows may be of one controller that differ by the kind they serve: what each remembers is
/// its own.
pub struct Row<C: Controller = ()> {
    /// Which.
    pub controller: Name,
    /// The items that a change of an object may concern.
    pub touched: fn(&Store, &Own<C>, Kind, &Key) -> Vec<Key>,
    /// The items of one namespace.
    pub of_namespace: fn(&Store, &str) -> Vec<Key>,
    /// What to do about one item.
    pub plan: fn(Context<'_, C>) -> Plan<C::Note>,
}

impl<C: Controller> Clone for Row<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Controller> Copy for Row<C> {}

/// A plan, and what has to be known for the next one.
pub type Asked<Q, N = ()> = (Plan<N>, Vec<Ask<Q>>);

/// Makes a plan by the answers that are there.
pub type AskingPlan<Q, C> = fn(Context<'_, C>, &Facts<Q>) -> Asked<Q, <C as Controller>::Note>;

/// A controller that has to know what the cluster does not hold, as a row of the table.
pub struct AskingRow<Q: Question, C: Controller = ()> {
    /// Which.
    pub controller: Name,
    /// The items that a change of an object may concern.
    pub touched: fn(&Store, &Own<C>, Kind, &Key) -> Vec<Key>,
    /// The items of one namespace.
    pub of_namespace: fn(&Store, &str) -> Vec<Key>,
    /// What to do about one item by the answers that are there, and what has to be known of it. What is asked no more is
    /// forgotten, so a plan names also what it has an answer to.
    pub plan: AskingPlan<Q, C>,
}

impl<Q: Question, C: Controller> Clone for AskingRow<Q, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q: Question, C: Controller> Copy for AskingRow<Q, C> {}
