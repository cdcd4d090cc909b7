//! Whether what is known of a kind is all there is, from all sources of that kind.

use parking_lot::Mutex;

use super::metrics::WatchMetrics;
use crate::store::{Kind, Reach};

/// The state of every source.
#[derive(Debug)]
pub(super) struct Reaches {
    sources: Mutex<Vec<(Kind, Reach)>>,
    metrics: WatchMetrics,
}

impl Reaches {
    /// Sources of those kinds; none has been read.
    pub(super) fn new(kinds: impl Iterator<Item = Kind>, metrics: WatchMetrics) -> Self {
        let sources: Vec<_> = kinds.map(|kind| (kind, Reach::Unknown)).collect();
        let reaches = Self { sources: Mutex::new(sources.clone()), metrics };
        for (kind, _) in &sources {
            reaches.count(*kind, &reaches_of(&sources, *kind));
        }
        reaches
    }

    /// The source of that number is in that state; returns the state of its kind when that has changed.
    pub(super) fn set(&self, at: usize, reach: Reach) -> Option<Reach> {
        let mut sources = self.sources.lock();
        let kind = sources.get(at)?.0;
        let before = of_kind(&reaches_of(&sources, kind));
        sources[at].1 = reach;
        let all = reaches_of(&sources, kind);
        self.count(kind, &all);
        let now = of_kind(&all);
        (before != now).then_some(now)
    }

    fn count(&self, kind: Kind, all: &[Reach]) {
        for reach in [Reach::Unknown, Reach::Listed, Reach::Absent] {
            self.metrics.sources(kind, reach, all.iter().filter(|one| **one == reach).count());
        }
    }
}

fn reaches_of(sources: &[(Kind, Reach)], kind: Kind) -> Vec<Reach> {
    sources.iter().filter(|(known, _)| *known == kind).map(|(_, reach)| *reach).collect()
}

/// All of a kind is known when all of its sources are.
fn of_kind(all: &[Reach]) -> Reach {
    if all.contains(&Reach::Unknown) {
        return Reach::Unknown;
    }
    if all.contains(&Reach::Listed) { Reach::Listed } else { Reach::Absent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_when_all_of_its_sources_are() {
        let kinds = [Kind::ConfigMap, Kind::Sandbox, Kind::ConfigMap];
        let reaches = Reaches::new(kinds.into_iter(), WatchMetrics::default());
        assert_eq!(reaches.set(0, Reach::Listed), None, "the other ConfigMaps are missing");
        assert_eq!(reaches.set(1, Reach::Absent), Some(Reach::Absent));
        assert_eq!(reaches.set(2, Reach::Listed), Some(Reach::Listed));
        assert_eq!(reaches.set(2, Reach::Listed), None);
        assert_eq!(reaches.set(0, Reach::Unknown), Some(Reach::Unknown));
        assert_eq!(reaches.set(1, Reach::Listed), Some(Reach::Listed));
    }
}
