//! Do processes, webhooks and namespaces agree on what is watched? Where they differ, or a namespace is missing, Agents are admitted and never
//! deployed, or the other way round.

use std::collections::BTreeSet;

use super::{Seen, Visit};
use crate::cli::scope::{Says, Scope};

const NAME: &str = "watched namespaces";
const RENDER: &str = "apply what `drawbridge render --watch-namespaces NAMES` prints for this installation, with the list that is meant \
                      (docs/tasks/upgrade.md says how to take its other flags and settings along)";

pub(super) async fn check(visit: &mut Visit, scope: &Scope) -> anyhow::Result<()> {
    if let Some(guess) = scope.is_guessed() {
        visit.unknown(NAME, guess, "run doctor as somebody who may read Deployments or webhook configurations");
        return Ok(());
    }
    if let Some((seen, remedy)) = disagreement(scope) {
        visit.finding(NAME, seen, remedy);
        return Ok(());
    }
    let mut missing = Vec::new();
    for namespace in visit.watched.clone() {
        match visit.read(NAME, &format!("/api/v1/namespaces/{namespace}")).await? {
            Seen::Is(_) => {}
            Seen::Absent => missing.push(namespace),
            Seen::Hidden => return Ok(()),
        }
    }
    if !missing.is_empty() {
        let remedy = format!("kubectl create namespace {}, then {RENDER}", missing[0]);
        visit.finding(NAME, format!("{} is watched and does not exist", missing.join(", ")), remedy);
    } else if visit.watched.is_empty() {
        visit.ok(NAME, "all of them");
    } else {
        visit.ok(NAME, format!("{}; what follows is about these", visit.watched.join(", ")));
    }
    Ok(())
}

/// Lists that cannot be read, or that differ.
fn disagreement(scope: &Scope) -> Option<(String, String)> {
    let wrong = scope.says.iter().find_map(|says| Some(format!("{}: {}", says.who, says.list.as_ref().err()?)));
    if let Some(seen) = wrong {
        return Some((format!("{seen}, so the process ends at its start"), RENDER.to_owned()));
    }
    let set = |says: &Says| says.list.iter().flatten().cloned().collect::<BTreeSet<_>>();
    let first = scope.says.first()?;
    let other = scope.says.iter().find(|says| set(says) != set(first))?;
    let words = |says: &Says| match says.list.as_deref() {
        Ok([]) | Err(_) => format!("{}: all", says.who),
        Ok(names) => format!("{}: {}", says.who, names.join(", ")),
    };
    Some((format!("they differ ({}; {})", words(first), words(other)), RENDER.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::scope::tests::{list, rendered};
    use crate::cli::serve::flags::Namespaces;

    #[test]
    fn what_is_rendered_agrees() {
        for names in [&[][..], &["team1"], &["team1", "team2"]] {
            assert_eq!(disagreement(&rendered(names)), None);
        }
    }

    #[test]
    fn lists_that_differ_and_lists_that_cannot_be_are_told() {
        let mut scope = rendered(&["team1"]);
        scope.says[1].list = Ok(list(&["team1", "team2"]));
        let (seen, _) = disagreement(&scope).unwrap();
        assert!(
            seen.contains("drawbridge-webhook: team1") && seen.contains("drawbridge-controllers: team1, team2"),
            "{seen}"
        );
        scope.says[1].list = Ok(Vec::new());
        assert!(disagreement(&scope).unwrap().0.contains("drawbridge-controllers: all"));
        scope.says[0].list = "Team_1".parse().map(|Namespaces(names)| names);
        assert!(disagreement(&scope).unwrap().0.contains("\"Team_1\" is not the name of a namespace"));
    }
}
