//! Custom resources of KAOS, group `kaos.tools`: Agent, ModelAPI and MCPServer.
//!
//! [`agent`], [`model_api`] and [`mcp_server`] are the definitions: every spelling that there ever was is structurally valid.
//! [`read`](mod@read) makes of a raw object what it means ([`shape`]), or says everything that is wrong with it; admission, controllers and
//! the command line read objects that way alone, never through the types of the definitions. [`migrate`] writes that meaning in the
//! spelling of today.

pub mod agent;
pub mod mcp_server;
pub mod migrate;
pub mod model_api;
pub mod models;
pub mod read;
mod schema;
pub mod shape;
pub mod unknown;

/// Their version.
pub const VERSION: &str = "v1alpha1";
/// Most items of any list that people write in them; a longer one is refused, and no more of it is read.
pub const MOST_ITEMS: usize = 1024;
/// Their category: `kubectl get kaos` shows all three.
pub const CATEGORY: &str = "kaos";
/// The model of an Agent that names none.
pub const DEFAULT_MODEL: &str = "smollm2:135m";
