//! What containers write, line by line.

use futures::{AsyncBufReadExt, Stream, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};

use super::{Answer, Cluster};

impl Cluster {
    /// The lines of a container, to the end of what there is, or with `follow` to the container's end.
    ///
    /// # Errors
    /// [`crate::cli::Unreachable`] when nobody answers.
    pub async fn log(
        &self,
        namespace: &str,
        (pod, container): (&str, &str),
        follow: bool,
    ) -> anyhow::Result<Result<impl Stream<Item = anyhow::Result<String>> + use<>, Answer>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let parameters = LogParams { container: Some(container.to_owned()), follow, ..LogParams::default() };
        match pods.log_stream(pod, &parameters).await {
            Ok(lines) => Ok(Ok(lines.lines().map_err(anyhow::Error::from))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Err(Answer::Absent)),
            Err(kube::Error::Api(status)) => Ok(Err(Answer::Refused(status.code, status.message))),
            Err(error) => Err(self.silent(&format!("GET the log of Pod {namespace}/{pod}"), &error).into()),
        }
    }
}
