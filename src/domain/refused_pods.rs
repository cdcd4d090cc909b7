//! Why an API server does not take the Pods that a workload's controller wants to create, from the words in which it says so.
//!
//! In: the message of condition `ReplicaFailure`, or of an Event `FailedCreate`. Out: a reason, and what to do about it.

use super::reason::Reason;

/// The reason behind such a message; [`Reason::ReplicaFailure`] when it is another one than those that are known by their words.
#[must_use]
pub fn reason(message: &str) -> Reason {
    // What the admission plugins ResourceQuota and LimitRanger have written since they exist.
    let limits = ["maximum ", "minimum ", "max limit to request ratio", "must specify"];
    match () {
        () if message.contains("exceeded quota") || message.contains("failed quota") => Reason::QuotaExceeded,
        () if message.contains("violates PodSecurity") => Reason::PodSecurityForbids,
        () if limits.iter().any(|words| message.contains(words)) && message.contains(" per ") => {
            Reason::LimitRangeRefused
        }
        () => Reason::ReplicaFailure,
    }
}

/// What to do about Pods that are refused for that reason in that namespace.
#[must_use]
pub fn remedy(reason: Reason, namespace: &str) -> String {
    match reason {
        Reason::QuotaExceeded => format!(
            "the sidecars need room, too: raise the quota (kubectl -n {namespace} describe resourcequota), or lower what the Pods ask for"
        ),
        Reason::LimitRangeRefused => format!(
            "the limits hold for sidecars, too: widen them (kubectl -n {namespace} describe limitrange), or set resources.* in the \
             platform file to values within them"
        ),
        Reason::PodSecurityForbids => {
            format!(
                "change label pod-security.kubernetes.io/enforce of namespace {namespace}, or what the Pod asks for"
            )
        }
        _ => format!("kubectl -n {namespace} get events --field-selector reason=FailedCreate shows what refuses them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_02_the_words_of_the_api_server_give_the_reason() {
        for (message, expected) in [
            (
                "pods \"a-1\" is forbidden: exceeded quota: small, requested: requests.cpu=150m, used: requests.cpu=100m, limited: requests.cpu=200m",
                Reason::QuotaExceeded,
            ),
            (
                "pods \"a-1\" is forbidden: failed quota: small: must specify limits.cpu for: agent",
                Reason::QuotaExceeded,
            ),
            (
                "pods \"a-1\" is forbidden: [maximum cpu usage per Container is 100m, but limit is 200m]",
                Reason::LimitRangeRefused,
            ),
            (
                "pods \"a-1\" is forbidden: minimum memory usage per Pod is 1Gi, but request is 100Mi",
                Reason::LimitRangeRefused,
            ),
            (
                "pods \"a-1\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false",
                Reason::PodSecurityForbids,
            ),
            ("admission webhook \"x.example.com\" denied the request: maximum", Reason::ReplicaFailure),
            ("", Reason::ReplicaFailure),
        ] {
            assert_eq!(reason(message), expected, "{message}");
        }
    }
}
