//! One file per container of ours.
//!
//! In: a [`Context`](super::context::Context). Out: a typed container, or the refusal that its image is missing.

pub(super) mod authbridge_proxy;
pub(super) mod combined;
pub(super) mod env;
pub(super) mod envoy;
pub(super) mod proxy_init;
pub(super) mod registration;
pub(super) mod signer;
pub(super) mod spiffe_helper;

use std::borrow::Cow;

use crate::admission::verdict::Denial;
use crate::config::layers::Field;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// The arguments of every binary that reads the runtime configuration.
const RUNTIME_CONFIG_ARGS: [&str; 2] = ["--config", "/etc/authbridge/config.yaml"];

/// The image under that key of the platform file; there are no built-in ones.
fn image<'a>(field: &'a Field<Option<String>>, key: &str) -> Result<Cow<'a, str>, Box<Denial>> {
    match field.value.as_deref() {
        Some(image) if !image.is_empty() => Ok(Cow::Borrowed(image)),
        _ => Err(Box::new(
            Denial::new(
                Reason::ImageMissing,
                503,
                format!("the platform file names no image under images.{key}, and a sidecar needs it"),
                format!(
                    "set images.{key} in key config.yaml of ConfigMap {} in Drawbridge's namespace",
                    keys::CONFIG_MAP_PLATFORM
                ),
            )
            .at(format!("images.{key}"), "nothing"),
        )),
    }
}
