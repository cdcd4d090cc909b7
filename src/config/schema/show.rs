//! Values for people: what `explain` prints and what a shadowed value is remembered as.

use serde_json::Value;

use crate::config::resolved::{InboundExclusions, NativeSidecars, SpireSwitch, TraceProtocol};
use crate::domain::mode::Mode;

/// One line for people.
pub trait Show {
    /// The value as people read it.
    fn show(&self) -> String;
}

impl Show for String {
    fn show(&self) -> String {
        if self.is_empty() { "unset".to_owned() } else { self.clone() }
    }
}

impl Show for Vec<String> {
    fn show(&self) -> String {
        format!("[{}]", self.join(", "))
    }
}

impl Show for Value {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "unset".to_owned(), Show::show)
    }
}

macro_rules! show_by {
    ($($type:ty, |$value:ident| $text:expr;)*) => {
        $(impl Show for $type { fn show(&self) -> String { let $value = self; ($text).to_string() } })*
    };
}

show_by! {
    u16, |value| value;
    i64, |value| value;
    f64, |value| value;
    Mode, |value| value.as_str();
    SpireSwitch, |value| value.as_str();
    InboundExclusions, |value| value.as_str();
    NativeSidecars, |value| value.as_str();
    TraceProtocol, |value| value.as_str();
}
