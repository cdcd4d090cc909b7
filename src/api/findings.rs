//! What is wrong, and what deserves attention: facts that webhook, controller and command line print alike.

use std::fmt;

use crate::domain::bounds::{LARGEST_TEXT, Over};
use crate::domain::reason::Reason;

/// How much of a value is repeated in a message, in characters.
const SEEN_LIMIT: usize = 80;
/// How much of a path is, in bytes: keys that users choose stand in it.
const PATH_LIMIT: usize = 512;
/// How many faults one answer prints.
const PRINTED_FAULTS: usize = 40;
/// How many faults, or notes, are kept of one look: an object has room for as many mistakes as whoever writes it likes. More than any check names
/// before it counts the rest itself.
pub const KEPT: usize = 128;

/// What a list of findings holds.
pub(crate) trait Finding: PartialEq + Sized {
    /// How many others it stands for; 0 of one that was found itself.
    fn others(&self) -> usize;

    /// One that stands for so many others, the first of which is this.
    fn standing_for(&self, count: usize) -> Self;
}

/// Adds what was found to a list in which each stands once. What is found past [`KEPT`] is counted by the last of the list and not compared, so
/// that a look costs no more than there is to look at.
pub(crate) fn add<T: Finding>(list: &mut Vec<T>, one: T) {
    if one.others() == 0 && list.contains(&one) {
        return;
    }
    let more = one.others().max(1);
    if let Some(last) = list.last_mut().filter(|last| last.others() > 0) {
        *last = last.standing_for(last.others() + more);
    } else if list.len() < KEPT {
        list.push(one);
    } else {
        list.push(one.standing_for(more));
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The code that travels everywhere.
    pub reason: Reason,
    /// Where: `spec.source.sourceRevision`, or `ConfigMap ns/name: steps[0].image`; cut when it is absurdly long.
    pub path: String,
    /// What is wrong there: the rest of a sentence that begins with the path, without a full stop.
    pub sentence: String,
    /// The value seen, shortened and with control characters made visible; never a credential.
    pub seen: Option<String>,
    /// What to do about it, without a full stop.
    pub remedy: String,
    /// The parameter that has no value, where that is what is wrong.
    pub parameter: Option<String>,
    /// How many others it stands for, of which nothing else is kept; 0 of one that was found itself.
    pub others: usize,
}

impl Fault {
    /// A fault at `path`.
    #[must_use]
    pub fn new(
        reason: Reason,
        path: impl Into<String>,
        sentence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (path, sentence, remedy) = (place(path.into()), sentence.into(), remedy.into());
        Self { reason, path, sentence, seen: None, remedy, parameter: None, others: 0 }
    }

    /// Nothing of the object is read but its marks, because it is `over` a bound.
    #[must_use]
    pub fn over(over: Over) -> Self {
        Self::over_of(over, LARGEST_TEXT)
    }

    /// The same of a kind of which `most` bytes are read.
    #[must_use]
    pub fn over_of(over: Over, most: usize) -> Self {
        let sentence = match over {
            Over::Size => format!(
                "is larger with its labels and annotations than {} KiB, the most that Drawbridge reads of one object; what was made of it \
                 before stays",
                most / 1024
            ),
            Over::Count => {
                "is one object too many: Drawbridge reads no more of one kind in a namespace; what it made of this object before stays".to_owned()
            }
            Over::Total => {
                "has no room: the objects of its kind, or of all kinds together, fill the memory that is kept for them, and no namespace gets more than its share; what was \
                 made of this object before stays"
                    .to_owned()
            }
        };
        Self::new(Reason::FieldInvalid, "spec", sentence, "make it smaller, or delete objects that are not needed")
    }

    /// A field that is absent or empty.
    #[must_use]
    pub fn required(path: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Reason::FieldRequired, path, "is required", remedy)
    }

    /// A field whose value is not allowed.
    #[must_use]
    pub fn invalid(path: impl Into<String>, sentence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Reason::FieldInvalid, path, sentence, remedy)
    }

    /// The same fault, which is that the parameter of that name has no value.
    #[must_use]
    pub fn of_parameter(mut self, name: &str) -> Self {
        self.parameter = Some(name.to_owned());
        self
    }

    /// The same fault, showing what was there.
    #[must_use]
    pub fn seeing(mut self, value: &str) -> Self {
        self.seen = Some(shown(value));
        self
    }
}

impl Finding for Fault {
    fn others(&self) -> usize {
        self.others
    }

    fn standing_for(&self, count: usize) -> Self {
        let faults = if count == 1 { "fault" } else { "faults" };
        let sentence = format!("has {count} more {faults} than the {KEPT} that are named");
        let remedy = "correct those, and the others are named";
        Self { others: count, ..Self::new(self.reason, "spec", sentence, remedy) }
    }
}

/// A path, cut at a character where it is too long.
fn place(mut path: String) -> String {
    if path.len() > PATH_LIMIT {
        path.truncate(path.floor_char_boundary(PATH_LIMIT));
        path.push('…');
    }
    path
}

/// A text as messages repeat it: quoted, shortened, control characters escaped.
#[must_use]
pub fn shown(value: &str) -> String {
    let mut head: String = value.chars().take(SEEN_LIMIT).collect();
    let length = value.chars().count();
    if length > SEEN_LIMIT {
        head.push('…');
        return format!("{head:?}, {length} characters");
    }
    format!("{head:?}")
}

impl fmt::Display for Fault {
    /// `path sentence (seen: value). What to do: remedy.`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.sentence)?;
        if let Some(seen) = &self.seen {
            write!(f, " (seen: {seen})")?;
        }
        write!(f, ". What to do: {}.", self.remedy)
    }
}

/// Something that works and deserves attention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Which warning.
    pub reason: Reason,
    /// Where.
    pub path: String,
    /// What, and what to do: one or two sentences.
    pub text: String,
    /// How many others it stands for, of which nothing else is kept; 0 of one that was found itself.
    pub others: usize,
}

impl Note {
    /// A note about `path`.
    #[must_use]
    pub fn new(reason: Reason, path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { reason, path: place(path.into()), text: text.into(), others: 0 }
    }
}

impl Finding for Note {
    fn others(&self) -> usize {
        self.others
    }

    fn standing_for(&self, count: usize) -> Self {
        let warnings = if count == 1 { "warning" } else { "warnings" };
        let text =
            format!("has {count} more {warnings} than the {KEPT} that are named; heed those, and the others are named");
        Self { others: count, ..Self::new(self.reason, "spec", text) }
    }
}

impl fmt::Display for Note {
    /// `Code: path: text`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.reason.code(), self.path, self.text)
    }
}

/// Everything that was found, in the order in which it was found; of each list the first [`KEPT`], and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// What is wrong with the object.
    pub faults: Vec<Fault>,
    /// What is wrong with ConfigMaps that the object refers to, or between them and the object. The ConfigMap may be
    /// put right without touching the object: a review warns of these, a build does not start with them.
    pub content: Vec<Fault>,
    /// What deserves attention.
    pub notes: Vec<Note>,
}

impl Findings {
    /// Adds a fault of the object.
    pub fn fault(&mut self, fault: Fault) {
        add(&mut self.faults, fault);
    }

    /// Adds a fault of the ConfigMaps.
    pub fn content(&mut self, fault: Fault) {
        add(&mut self.content, fault);
    }

    /// Adds a note; each is said once.
    pub fn note(&mut self, note: Note) {
        add(&mut self.notes, note);
    }

    /// Whether a fault names this path.
    #[must_use]
    pub fn blames(&self, path: &str) -> bool {
        self.faults.iter().any(|fault| fault.path == path)
    }

    /// Takes over what another look found.
    pub fn extend(&mut self, other: Findings) {
        other.faults.into_iter().for_each(|fault| self.fault(fault));
        other.content.into_iter().for_each(|fault| self.content(fault));
        other.notes.into_iter().for_each(|note| self.note(note));
    }
}

/// How many faults these are, with those that one of them stands for.
#[must_use]
pub fn count(faults: &[Fault]) -> usize {
    faults.iter().map(|fault| fault.others.max(1)).sum()
}

/// Faults as one text: one per line, each beginning with its path.
#[must_use]
pub fn printed(faults: &[Fault]) -> String {
    let (found, counted): (Vec<&Fault>, Vec<&Fault>) = faults.iter().partition(|fault| fault.others == 0);
    let mut lines: Vec<String> = found.iter().take(PRINTED_FAULTS).map(ToString::to_string).collect();
    if found.len() > PRINTED_FAULTS {
        lines.push(format!("and {} more", count(faults) - PRINTED_FAULTS));
    } else {
        lines.extend(counted.iter().map(ToString::to_string));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Fault, Findings, KEPT, Note, count, printed, shown};
    use crate::domain::reason::Reason;

    #[test]
    fn a_fault_is_a_sentence_that_begins_with_its_path() {
        let fault = Fault::required("spec.source.sourceRepository", "name the repository");
        assert_eq!(fault.to_string(), "spec.source.sourceRepository is required. What to do: name the repository.");
        let fault = Fault::invalid("spec.mode", "is not a mode", "write dev").seeing("staging\n");
        assert_eq!(fault.to_string(), "spec.mode is not a mode (seen: \"staging\\n\"). What to do: write dev.");
    }

    #[test]
    fn long_values_and_long_lists_are_cut() {
        assert_eq!(shown("x"), "\"x\"");
        assert!(shown(&"x".repeat(1 << 20)).len() < 150);
        let faults: Vec<_> = (0..1000).map(|i| Fault::required(format!("spec.a[{i}]"), "write it")).collect();
        let text = printed(&faults);
        assert_eq!(text.lines().count(), 41);
        assert!(text.ends_with("and 960 more"));
        let key = "é".repeat(1 << 20);
        assert!(Fault::required(format!("spec.labels[{key}]"), "remove it").to_string().len() < 600);
        assert!(Note::new(Reason::UnknownField, format!("spec.{key}"), "x").path.ends_with("é…"));
    }

    #[test]
    fn the_same_thing_is_said_once() {
        let mut findings = Findings::default();
        findings.fault(Fault::required("a", "b"));
        findings.fault(Fault::required("a", "b"));
        assert_eq!(findings.faults.len(), 1);
        assert!(findings.blames("a") && !findings.blames("b"));
    }

    #[test]
    fn what_is_found_past_the_bound_is_counted_and_not_kept() {
        let fault = |number: usize| Fault::required(format!("spec.a[{number}]"), "write it");
        let note = |number: usize| Note::new(Reason::ValueShadowed, format!("spec.a[{number}]"), "has no effect");
        let mut findings = Findings::default();
        for number in 0..6_000 {
            findings.fault(fault(number));
            findings.content(fault(number));
            findings.note(note(number));
        }
        // What is named already is said once, also then.
        findings.fault(fault(7));
        findings.note(note(7));
        for list in [&findings.faults, &findings.content] {
            assert_eq!((list.len(), count(list)), (KEPT + 1, 6_000));
            assert!(printed(list).ends_with("\nand 5960 more"), "{}", printed(list));
            assert_eq!(
                list[KEPT].to_string(),
                "spec has 5872 more faults than the 128 that are named. What to do: correct those, and the others are \
                 named."
            );
        }
        assert_eq!((findings.notes.len(), findings.notes[KEPT].others), (KEPT + 1, 5_872));
        assert!(findings.notes[KEPT].text.contains("has 5872 more warnings"), "{}", findings.notes[KEPT]);
        assert_eq!(printed(&findings.faults[KEPT..]), findings.faults[KEPT].to_string(), "nothing is left unsaid");
        // Taken over, it stands for as many.
        let mut all = Findings::default();
        all.fault(Fault::required("b", "write it"));
        all.extend(findings.clone());
        all.extend(findings);
        assert_eq!((all.faults.len(), all.notes.len()), (KEPT + 1, KEPT + 1));
        assert!(count(&all.faults) > 6_000 && all.notes[KEPT].others >= 5_872, "{:?}", all.faults[KEPT]);
    }
}
