//! What people are told of a bundle that somebody else writes.

use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::super::machine::Effect;
use super::super::objects::Kind;
use super::super::publish::Publisher;
use super::objects::refusing;
use super::*;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::server::certs::context::{Context, Notice};
use crate::server::certs::metrics::CertificateMetrics;

/// What the publisher says of an entry that lost its root.
fn said(by_agreement: bool, injected: bool) -> String {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let listener = {
        let heard = Arc::clone(&heard);
        Arc::new(move |notice: &Notice| {
            assert_eq!(notice.reason, Reason::BundleOverwritten);
            heard.lock().push(notice.message.clone());
        })
    };
    let context = Context::new(Arc::new(|| SystemTime::UNIX_EPOCH), CertificateMetrics::default(), listener);
    let service = (keys::SERVICE_WEBHOOK.to_owned(), "kagenti-system".to_owned());
    let publisher = Publisher::new(refusing(422, None), service, context);
    let publisher = if by_agreement { publisher.by_agreement() } else { publisher };
    let lost = Overwritten { entry: "a".to_owned(), writer: Some("cainjector".to_owned()), injected };
    publisher.tell(Effect::Overwritten(Kind::Mutating, "u".to_owned(), lost));
    heard.lock().concat()
}

#[tokio::test]
async fn who_overwrites_because_an_annotation_asks_for_it_is_told_of_with_the_annotation() {
    for (by_agreement, injected, back, annotation) in
        [(false, false, true, false), (false, true, true, true), (true, false, true, false), (true, true, false, true)]
    {
        let said = said(by_agreement, injected);
        assert!(said.starts_with("cainjector took Drawbridge's certificate authority out of caBundle in entry a of"));
        assert_eq!(said.contains("It is put back at once"), back, "{said}");
        assert_eq!(said.contains("cert-manager.io/inject-"), annotation, "{said}");
    }
}
