//! Tekton's references `$(…)` in a text.
//!
//! In: any text. Out: every reference in it, in order, parsed as far as Tekton would. Promises: what this module does
//! not find, Tekton does not replace: each `$(` counts, closed or not, quoted or not; a text is looked through once,
//! however many openings it has.

/// Longest reference that is parsed, in bytes: what is longer names nothing that anybody has.
const LONGEST: usize = 1024;

/// One `$(…)` in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence<'t> {
    /// As written, with its brackets; cut where it is absurdly long.
    pub text: &'t str,
    /// What it refers to.
    pub target: Target<'t>,
}

/// What a reference refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'t> {
    /// `tasks.<task>.results.<result>`.
    Result {
        /// The task.
        task: &'t str,
        /// Its result.
        result: &'t str,
        /// Which part of it.
        part: Part<'t>,
    },
    /// `params.<name>`.
    Param {
        /// The parameter.
        name: &'t str,
        /// Which part of it.
        part: Part<'t>,
    },
    /// `context.pipelineRun.name`, `.namespace` or `.uid`.
    Run,
    /// Anything else, also what is not closed.
    Other,
}

/// Which part of a value a reference takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'t> {
    /// The value, a string.
    Whole,
    /// `[*]`: all of a list or object.
    All,
    /// `[n]`: one element of a list.
    Element,
    /// `.key`: one member of an object.
    Member(&'t str),
}

/// Whether a text contains anything that Tekton might take for a reference.
#[must_use]
pub fn mentions(text: &str) -> bool {
    opening(text).is_some()
}

/// Where the first `$(` stands. Most texts have no `$` at all, and a search for one byte needs no preparation.
fn opening(text: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find('$') {
        if text.as_bytes().get(from + at + 1) == Some(&b'(') {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// Every reference in a text, in order.
#[must_use]
pub fn in_text(text: &str) -> Vec<Occurrence<'_>> {
    let mut found = Vec::new();
    let (mut from, mut close) = (0, None);
    while let Some(start) = opening(&text[from..]).map(|at| from + at) {
        // What closes the one before closes this one, too, unless it stands in front of it.
        if close.is_none_or(|at: usize| at < start) {
            close = text[start..].find(')').map(|at| start + at);
        }
        let Some(end) = close else {
            found.push(Occurrence { text: cut(&text[start..]), target: Target::Other });
            break;
        };
        let whole = &text[start..=end];
        let target = if whole.len() > LONGEST { Target::Other } else { target(&text[start + 2..end]) };
        found.push(Occurrence { text: cut(whole), target });
        from = start + 2;
    }
    found
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

fn target(inner: &str) -> Target<'_> {
    if let Some(rest) = inner.strip_prefix("tasks.") {
        return task_result(rest).unwrap_or(Target::Other);
    }
    if let Some(rest) = inner.strip_prefix("params") {
        return accessor(rest).map_or(Target::Other, |(name, part)| Target::Param { name, part });
    }
    match inner {
        "context.pipelineRun.name" | "context.pipelineRun.namespace" | "context.pipelineRun.uid" => Target::Run,
        _ => Target::Other,
    }
}

fn task_result(rest: &str) -> Option<Target<'_>> {
    let (task, rest) = rest.split_once('.')?;
    let rest = rest.strip_prefix("results")?;
    let (result, part) = accessor(rest)?;
    is_word(task).then_some(Target::Result { task, result, part })
}

/// `.name` or `['name']` or `["name"]`, then the part.
fn accessor(rest: &str) -> Option<(&str, Part<'_>)> {
    if let Some(dotted) = rest.strip_prefix('.') {
        let end = dotted.find(['.', '[']).unwrap_or(dotted.len());
        let (name, tail) = dotted.split_at(end);
        return Some((name, part(tail)?)).filter(|(name, _)| is_word(name));
    }
    let (quote, quoted) = match rest.strip_prefix("['") {
        Some(quoted) => ("']", quoted),
        None => ("\"]", rest.strip_prefix("[\"")?),
    };
    let (name, tail) = quoted.split_once(quote)?;
    Some((name, part(tail)?)).filter(|(name, _)| name.split('.').all(is_word))
}

fn part(tail: &str) -> Option<Part<'_>> {
    match tail {
        "" => Some(Part::Whole),
        "[*]" => Some(Part::All),
        _ => match tail.strip_prefix('.') {
            Some(key) => is_word(key).then_some(Part::Member(key)),
            None => {
                let index = tail.strip_prefix('[')?.strip_suffix(']')?;
                (!index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit())).then_some(Part::Element)
            }
        },
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Part, Target, in_text, mentions};

    #[test]
    fn what_is_found_and_how_it_is_read() {
        let result = |task, result, part| Target::Result { task, result, part };
        let param = |name, part| Target::Param { name, part };
        for (text, expected) in [
            ("$(tasks.a.results.b)", result("a", "b", Part::Whole)),
            ("$(tasks.a-1.results['b.c'])", result("a-1", "b.c", Part::Whole)),
            ("$(tasks.a.results[\"b\"][*])", result("a", "b", Part::All)),
            ("$(tasks.a.results.b[0])", result("a", "b", Part::Element)),
            ("$(tasks.a.results.b.c)", result("a", "b", Part::Member("c"))),
            ("$(params.x)", param("x", Part::Whole)),
            ("$(params['a.b'])", param("a.b", Part::Whole)),
            ("$(params.x[*])", param("x", Part::All)),
            ("$(context.pipelineRun.uid)", Target::Run),
            ("$(context.pipeline.name)", Target::Other),
            ("$(tasks.a.status)", Target::Other),
            ("$(tasks.a.results.b.c.d)", Target::Other),
            ("$(params.a.b.c)", Target::Other),
            ("$(params)", Target::Other),
            ("$(FOO)", Target::Other),
            ("$()", Target::Other),
            ("$(tasks.a.results.b", Target::Other),
            ("$(tasks.a.results.b[x])", Target::Other),
        ] {
            let found = in_text(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].target, expected, "{text}");
        }
        assert!(in_text("no reference, $HOME, $ (x)").is_empty());
        assert!(mentions("a$(b") && mentions("$$(b") && mentions("ä$ä$(") && mentions("$("));
        assert!(!mentions("$[b]") && !mentions("a$") && !mentions("$$") && !mentions("$ (") && !mentions(""));
    }

    #[test]
    fn several_and_nested_references_are_all_seen() {
        let found = in_text("$(params.a)-$$(params.b)");
        assert_eq!(found.iter().map(|one| one.text).collect::<Vec<_>>(), ["$(params.a)", "$(params.b)"]);
        let nested = in_text("$(tasks.$(params.a).results.b)");
        assert!(nested.iter().any(|one| one.target == Target::Other));
        assert!(nested.iter().any(|one| matches!(one.target, Target::Param { name: "a", .. })));
        let texts = |text: &'static str| in_text(text).into_iter().map(|one| one.text).collect::<Vec<_>>();
        assert_eq!(texts("$(a$(b)c)$(d)$(e"), ["$(a$(b)", "$(b)", "$(d)", "$(e"]);
        assert_eq!(texts(")$(a))é$(b"), ["$(a)", "$(b"]);
    }

    /// Each opening counts, and none costs more than what it is cut to.
    #[test]
    fn openings_within_openings_are_cut() {
        for (opens, end) in [("$(", ")"), ("$(params['", ")"), ("$(tasks.é", ")"), ("$(", "")] {
            let text = format!("{}{end}", opens.repeat(50_000));
            let found = in_text(&text);
            assert_eq!(found.len(), if end.is_empty() { 1 } else { 50_000 }, "{opens}");
            assert!(found.iter().all(|one| one.text.len() <= LONGEST && one.target == Target::Other), "{opens}");
        }
        let name = "n".repeat(LONGEST);
        assert_eq!(in_text(&format!("$(params.{name})"))[0].target, Target::Other);
    }
}
