//! The second act: four things are broken, and `drawbridge status` has a line that names each.

use anyhow::{Context as _, Result, bail};
use tokio::time::{Duration, Instant, sleep};
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{Access, ControlPlane, Objects};

use super::{drawbridge, kubectl, say, step, tell};

/// Where it happens.
const NAMESPACE: &str = "second-act";

const QUOTA: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: second-act}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: second-act}
spec: {hard: {pods: '0'}}
";

const WORKLOADS: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: no-room, namespace: second-act}
spec:
  selector: {matchLabels: {app: no-room}}
  template:
    metadata: {labels: {app: no-room, kagenti.io/type: agent}}
    spec: {containers: [{name: agent, image: example.com/agent:1, ports: [{containerPort: 8000}]}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: second-act-configuration}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: mine, namespace: second-act-configuration, labels: {kagenti.io/defaults: 'true'}}
data: {config.yaml: 'mode: [waypoint'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: misled, namespace: second-act-configuration}
spec:
  selector: {matchLabels: {app: misled}}
  template:
    metadata: {labels: {app: misled, kagenti.io/type: agent}}
    spec: {containers: [{name: agent, image: example.com/agent:1, ports: [{containerPort: 8000}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: misspelt, namespace: second-act-configuration, labels: {kagenti.io/type: Agent}}
spec:
  selector: {matchLabels: {app: misspelt}}
  template:
    metadata: {labels: {app: misspelt}}
    spec: {containers: [{name: agent, image: example.com/agent:1, ports: [{containerPort: 8000}]}]}
";

/// Breaks the four, shows the lines, and puts everything back.
pub(super) async fn show(cp: &ControlPlane) -> Result<()> {
    let access = cp.admin();
    step("second act: a quota without room, a ConfigMap that is no YAML, a label with a wrong value: kubectl apply")?;
    tell(&kubectl(access, &["apply", "-f", "-"], QUOTA).await?)?;
    Objects::new(access.client().await?, NAMESPACE).until_full("small").await?;
    tell(&kubectl(access, &["apply", "-f", "-"], WORKLOADS).await?)?;
    let lines = [
        ("second-act", "QuotaExceeded: "),
        ("second-act-configuration", "NamespaceConfigUnreadable: "),
        ("second-act-configuration", "kagenti.io/type on the deployment itself is \"Agent\""),
    ];
    for (namespace, line) in lines {
        step(&format!("drawbridge status -n {namespace}, the line that names it"))?;
        say(&format!("  {}\n", named(access, &["status", "-n", namespace], line).await?))?;
    }
    step("kubectl delete mutatingwebhookconfiguration drawbridge: status leads with it")?;
    let get = ["get", "mutatingwebhookconfiguration", "drawbridge", "-o", "json"];
    let kept = kubectl(access, &get, "").await?;
    tell(&kubectl(access, &["delete", "mutatingwebhookconfiguration", "drawbridge"], "").await?)?;
    let gone = "MutatingWebhookConfiguration drawbridge is gone";
    say(&format!("  {}\n", named(access, &["status", "-n", "default"], gone).await?))?;
    step("everything is put back")?;
    let mut kept: serde_json::Value = serde_json::from_str(&kept)?;
    for member in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        kept["metadata"].as_object_mut().context("an object has metadata")?.remove(member);
    }
    tell(&kubectl(access, &["create", "-f", "-"], &kept.to_string()).await?)?;
    for namespace in [NAMESPACE, "second-act-configuration"] {
        tell(&kubectl(access, &["delete", "namespace", namespace, &timeout()], "").await?)?;
    }
    Ok(())
}

/// The first line of what a command prints that has those words, once it has.
async fn named(access: &Access, args: &[&str], words: &str) -> Result<String> {
    let begun = Instant::now();
    loop {
        let said = drawbridge(access, args).await?;
        if let Some(line) = said.lines().find(|line| line.contains(words)) {
            return Ok(line.to_owned());
        }
        if begun.elapsed() > patience() {
            bail!("drawbridge {} never said {words:?}:\n{said}", args.join(" "));
        }
        sleep(Duration::from_millis(200)).await;
    }
}
