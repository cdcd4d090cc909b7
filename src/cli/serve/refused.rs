//! Flags of the Go operators that this version refuses by name, with what stands in for them or will bring them.
//! A flag that did nothing would be worse than one that is missing.

/// Flag without dashes (a trailing `*` stands for the rest), and the sentence.
pub const REFUSED: &[(&str, &str)] = &[
    ("leader-elect", "controllers always hold the Lease before they write; leave the flag out"),
    ("metrics-secure", "metrics are plain HTTP on the port of the probes; restrict who reaches it by NetworkPolicy"),
    ("metrics-cert-*", "metrics are plain HTTP on the port of the probes; restrict who reaches it by NetworkPolicy"),
    ("enable-http2", "HTTP/2 is always offered, with limits on streams, resets and control frames"),
    ("zap-*", "use --log-level and --log-format"),
    (
        "enable-client-registration",
        "the operator registers no clients at Keycloak: the sidecar of each Pod does; leave the flag out",
    ),
    (
        "client-auth-type",
        "the operator registers no clients at Keycloak: the sidecar of each Pod does, from ConfigMap authbridge-config; leave the flag out",
    ),
    (
        "spiffe-idp-alias",
        "the operator registers no clients at Keycloak: the sidecar of each Pod does, from ConfigMap authbridge-config; leave the flag out",
    ),
    (
        "credential-wait-timeout",
        "the operator registers no clients at Keycloak: the sidecar of each Pod does, from ConfigMap authbridge-config; leave the flag out",
    ),
    (
        "keycloak-*",
        "the operator registers no clients at Keycloak: the sidecar of each Pod does, from ConfigMap authbridge-config; leave the flag out",
    ),
    ("enable-authbridge-config", "the ConfigMaps of agent namespaces are always made; leave the flag out"),
    ("require-a2a-signature", "set cards.trustBundle and cards.audit: false in the platform file"),
    ("signature-audit-mode", "set cards.audit in the platform file"),
    (
        "enforce-network-policies",
        "each namespace says whether trust is enforced: label it agent.kagenti.dev/trust=enforced; leave the flag out",
    ),
    (
        "spire-trust-domain",
        "set spiffe.trustDomain in the platform file, and cards.trustBundle.trustDomain where the bundle names none",
    ),
    ("spire-trust-bundle-configmap", "set cards.trustBundle.configMap.name in the platform file"),
    ("spire-trust-bundle-configmap-namespace", "set cards.trustBundle.configMap.namespace in the platform file"),
    ("spire-trust-bundle-configmap-key", "set cards.trustBundle.configMap.key in the platform file"),
    ("spire-trust-bundle-refresh-interval", "the trust bundle is watched; leave the flag out"),
    ("svid-expiry-grace-period", "set cards.proactiveRestart and cards.restartGraceSeconds in the platform file"),
    ("enable-card-discovery", "agent cards are always looked for; leave the flag out"),
    (
        "enable-verified-fetch",
        "set cards.proof.enabled: true in the platform file, and install with drawbridge render --with-spire",
    ),
    ("verified-fetch-*", "set cards.proof.enabled and cards.proof.socket in the platform file"),
    (
        "enable-mlflow",
        "the operator sets no MLflow up; traces go where trace.endpoint of the platform file says; leave the flag out",
    ),
    (
        "mlflow-*",
        "the operator sets no MLflow up; traces go where trace.endpoint of the platform file says; leave the flag out",
    ),
    (
        "enable-otel-bootstrap",
        "the operator sets no MLflow up; traces go where trace.endpoint of the platform file says; leave the flag out",
    ),
    ("enable-kuadrant", "Kuadrant is not supported"),
    ("enable-sigstore-verification", "image signatures are the work of an image policy engine"),
    ("sigstore-*", "image signatures are the work of an image policy engine"),
];

/// What to say about a flag of upstream's, written as on the command line.
#[must_use]
pub fn sentence(argument: &str) -> Option<&'static str> {
    let name = argument.trim_start_matches('-').split('=').next().unwrap_or_default();
    REFUSED
        .iter()
        .find(|(known, _)| match known.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *known,
        })
        .map(|(_, sentence)| *sentence)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_refused_flag_is_named_and_none_exists() {
        let command = Cli::command();
        let serve = command.get_subcommands().find(|sub| sub.get_name() == "serve").unwrap();
        for argument in serve.get_arguments().filter_map(|argument| argument.get_long()) {
            assert_eq!(sentence(&format!("--{argument}")), None, "--{argument} exists and is refused");
        }
        assert_eq!(sentence("--zap-log-level=debug"), Some("use --log-level and --log-format"));
        assert!(sentence("-leader-elect").is_some());
        assert_eq!(sentence("--leader-elects"), None);
    }
}
