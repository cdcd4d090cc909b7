//! What the controller of a namespace's ConfigMaps remembers: whether they are all there for somebody who is enrolled; pure.

use crate::controllers::scaffold::controller::Controller;

/// The controller of the ConfigMaps that injected Pods refer to.
#[derive(Debug, Clone, Copy)]
pub struct NamespaceConfig;

/// What a plan found out about its namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Note {
    /// A workload is enrolled, and nothing is to be written: until a ConfigMap or the configuration is another, that a workload changes,
    /// comes or goes leads to no write, whether somebody is enrolled afterwards or not.
    pub settled: bool,
}

impl Controller for NamespaceConfig {
    type Note = Note;
    type Memory = ();
}
