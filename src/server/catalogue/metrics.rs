//! Counters of the catalogue; their labels are closed sets.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum Asked {
    Catalogue,
    Card,
}

/// What the API server said of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum Review {
    Accepted,
    Refused,
    Failed,
}

/// What became of a verified card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
enum State {
    Listed,
    NoRoom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRequest {
    asked: Asked,
    code: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReview {
    outcome: Review,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCard {
    state: State,
}

/// Counters of the catalogue. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct CatalogueMetrics {
    requests: Family<OfRequest, Counter>,
    reviews: Family<OfReview, Counter>,
    cards: Family<OfCard, Gauge>,
    bytes: Gauge,
}

impl CatalogueMetrics {
    /// Puts the counters into a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "drawbridge_catalogue_requests",
            "Requests for the catalogue and for single cards of it, by the status of the answer",
            self.requests.clone(),
        );
        registry.register(
            "drawbridge_catalogue_token_reviews",
            "Tokens of callers of the catalogue that the API server was asked about, by its answer",
            self.reviews.clone(),
        );
        registry.register(
            "drawbridge_catalogue_cards",
            "Verified cards that the catalogue keeps, and those that it has no room for",
            self.cards.clone(),
        );
        registry.register("drawbridge_catalogue_bytes", "Bytes of cards that the catalogue keeps", self.bytes.clone());
    }

    pub(super) fn answered(&self, asked: Asked, code: u16) {
        self.requests.get_or_create(&OfRequest { asked, code }).inc();
    }

    pub(super) fn reviewed(&self, outcome: Review) {
        self.reviews.get_or_create(&OfReview { outcome }).inc();
    }

    pub(super) fn kept(&self, (listed, no_room, bytes): (usize, usize, usize)) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.cards.get_or_create(&OfCard { state: State::Listed }).set(number(listed));
        self.cards.get_or_create(&OfCard { state: State::NoRoom }).set(number(no_room));
        self.bytes.set(number(bytes));
    }

    /// One series in every family.
    pub fn fill(&self) {
        self.answered(Asked::Catalogue, 200);
        self.reviewed(Review::Accepted);
        self.kept((0, 0, 0));
    }
}
