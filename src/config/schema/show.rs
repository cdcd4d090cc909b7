//! Values for people: what `explain` prints, what a status says, and what a shadowed value is remembered as; without credentials in addresses.

use serde_json::Value;

use crate::config::resolved::{InboundExclusions, NativeSidecars, SpireSwitch, TraceProtocol};
use crate::domain::mode::Mode;
use crate::domain::userinfo::without_userinfo;

/// One line for people.
pub trait Show {
    /// The value as people read it.
    fn show(&self) -> String;
}

impl Show for String {
    fn show(&self) -> String {
        if self.is_empty() { "unset".to_owned() } else { without_userinfo(self) }
    }
}

impl Show for Vec<String> {
    fn show(&self) -> String {
        format!("[{}]", without_userinfo(&self.join(", ")))
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
