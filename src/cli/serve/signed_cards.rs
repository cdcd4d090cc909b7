//! The signed card in a workload's ConfigMap, read when its version is another. In: which ConfigMap. Out: the text of one key, or why there is none.
//!
//! Promises: nothing but that key of that very object is kept; what a server or a network does is told apart from what the object is.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::core::Request;
use kube::core::params::GetParams;
use serde::Deserialize;

use super::versions::unanswered;
use crate::adapters::card::SignedCards;
use crate::controllers::agent_card::Read;
use crate::controllers::scaffold::lane::{AskError, AskFault};
use crate::domain::keys;
use crate::domain::printable::printable;
use crate::domain::reason::Reason;
use crate::store::Kind;

/// How long the API server has.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a message.
const MESSAGE: usize = 512;

#[derive(Deserialize)]
struct Found {
    metadata: Metadata,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Metadata {
    uid: Option<String>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "agent-card.json")]
    card: Option<String>,
}

/// Reads by that client.
pub(super) fn signed_cards(client: Client) -> SignedCards {
    Arc::new(move |read| {
        let client = client.clone();
        Box::pin(async move { text(&client, &read).await })
    })
}

async fn text(client: &Client, read: &Read) -> Result<String, AskError> {
    let name = &read.name;
    let open = |message: String| failed(AskFault::Unreachable, Reason::FetchFailed, &message);
    let request = Request::new(Kind::ConfigMap.path(&read.namespace)).get(name, &GetParams::default());
    let request = request.map_err(|error| open(format!("ConfigMap {name}: {error}")))?;
    let answer = tokio::time::timeout(PATIENCE, client.request::<Found>(request)).await;
    let found = match answer {
        Err(_) => return Err(open(format!("ConfigMap {name}: the API server did not answer in time"))),
        Ok(Ok(found)) => found,
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
            return Err(failed(AskFault::Refused, Reason::NotPermitted, &format!("ConfigMap {name} may not be read")));
        }
        // What is gone, the watch tells.
        Ok(Err(error)) => return Err(open(unanswered(&format!("ConfigMap {name}"), &error))),
    };
    if found.metadata.uid.as_deref() != Some(&*read.uid) {
        return Err(open(format!("ConfigMap {name} was deleted and made anew in the meantime")));
    }
    found.data.and_then(|data| data.card).ok_or_else(|| {
        let message = format!("ConfigMap {name} has no key {}", keys::KEY_SIGNED_CARD);
        failed(AskFault::Unusable, Reason::CardInvalid, &message)
    })
}

fn failed(fault: AskFault, reason: Reason, message: &str) -> AskError {
    AskError { fault, reason, message: printable(message, MESSAGE).into() }
}
