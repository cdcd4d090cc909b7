//! Variables by which a process is given code, or options that are as good as code, before its own program begins.
//!
//! In: nothing. Out: names, for whoever judges who may set them. Promise: what stands here is read by a loader, a shell or an interpreter of any
//! image, so that setting it is a way to say what runs, as a command is; what only a program itself reads does not stand here.
//!
//! Not here, because people use them for other things and nothing runs by them alone: `ENV` (only shells that somebody types into read it),
//! `PYTHONWARNINGS` (it imports modules that are installed; what one of them would start is in `BROWSER`), and where installers fetch packages from
//! (a package as the source of tools is asked for as such).

/// The names.
pub const VARIABLES: &[&str] = &[
    // The loader, and what looks for programs and parts of libraries.
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "GCONV_PATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PATH",
    // Shells: files and texts that they execute.
    "BASH_ENV",
    "SHELLOPTS",
    "PS4",
    // Python.
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "BROWSER",
    // Node.
    "NODE_OPTIONS",
    "NODE_PATH",
    // Java.
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    // .NET.
    "DOTNET_STARTUP_HOOKS",
    "DOTNET_ADDITIONAL_DEPS",
    "CORECLR_PROFILER_PATH",
    // Perl, Ruby, PHP, Lua.
    "PERL5OPT",
    "PERL5LIB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
];

/// The beginning of the names by which Bash is handed functions.
pub const FUNCTIONS: &str = "BASH_FUNC_";

/// The lists of variables in the spec of a kind, in every spelling, beside those of `podSpec`; the kind as manifests spell it.
pub const LISTS: &[(&str, &[&str])] = &[
    ("Agent", &["container/env", "config/env"]),
    ("ModelAPI", &["container/env", "proxyConfig/env", "hostedConfig/env", "serverConfig/env"]),
    ("MCPServer", &["container/env", "config/env"]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::secrets::OF_KAOS;

    #[test]
    fn each_name_stands_once_and_is_one_that_a_policy_can_hold() {
        let all: BTreeSet<_> = VARIABLES.iter().collect();
        assert_eq!(all.len(), VARIABLES.len());
        let plain = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        assert!(VARIABLES.iter().chain([&FUNCTIONS]).all(plain));
    }

    /// Whoever asks for the Secrets of an environment looks into the same lists.
    #[test]
    fn the_lists_are_those_in_which_secrets_are_looked_for() {
        for (kind, lists) in LISTS {
            let (_, paths) = OF_KAOS.iter().find(|(known, _)| known == kind).unwrap();
            let of_env = paths.iter().filter_map(|path| path.strip_suffix("/*/valueFrom/secretKeyRef/name"));
            assert_eq!(of_env.collect::<BTreeSet<_>>(), lists.iter().copied().collect::<BTreeSet<_>>(), "{kind}");
        }
        assert_eq!(LISTS.len(), OF_KAOS.len());
    }
}
