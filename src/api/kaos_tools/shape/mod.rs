//! What the three kinds of `kaos.tools` mean, in one shape whatever the spelling: shape M.
//!
//! Values of [`super::read`]: every alias is resolved, every default filled in. `podSpec`, `resources` and entries of an environment stay
//! the JSON that was written, so that numbers and fields nobody knows survive. Promises: no name stands twice in a list or an environment;
//! an empty text is no text; `Debug` prints neither the value of a variable nor a key nor a configuration.

mod agent;
mod container;
mod mcp_server;
mod model_api;
mod offer;

pub use agent::{Agent, Memory, Model};
pub use container::{Container, KeyRef, Raw, Telemetry, Variable};
pub use mcp_server::{McpServer, Runtime};
pub use model_api::{ApiKey, Configuration, Hosted, Mode, ModelApi, Proxy};
pub use offer::{Budget, Dollars, Offer, Price};
