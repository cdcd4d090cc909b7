//! What containers write, line by line.

use futures::{AsyncBufRead, AsyncBufReadExt, Stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};

use super::{Answer, Cluster};

/// How far the lines of a container have been read; nothing of them to begin with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When the last line was written.
    at: Option<Timestamp>,
    /// How many lines of that time there were.
    lines: usize,
}

impl Place {
    /// The place behind one more line; what has no time is the kubelet's own word, between two lines.
    fn behind(self, at: Option<Timestamp>) -> Self {
        if at > self.at { Self { at, lines: 1 } } else { Self { lines: self.lines + 1, ..self } }
    }

    /// The time to ask from: a whole second, never later than the last line.
    fn since(self) -> Option<Timestamp> {
        self.at.and_then(|at| Timestamp::from_second(at.as_second()).ok())
    }
}

impl Cluster {
    /// The lines of a container from a place on, each with the place behind it, to the end of what there is; with `follow` to
    /// the container's end, or earlier when its kubelet or the API server ends. What is not UTF-8 in a line is replaced:
    /// programs write what they like.
    ///
    /// # Errors
    /// [`crate::cli::Unreachable`] when nobody answers.
    pub async fn log(
        &self,
        namespace: &str,
        (pod, container): (&str, &str),
        from: Place,
        follow: bool,
    ) -> anyhow::Result<Result<impl Stream<Item = anyhow::Result<(String, Place)>> + use<>, Answer>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let container = Some(container.to_owned());
        let parameters =
            LogParams { container, follow, timestamps: true, since_time: from.since(), ..LogParams::default() };
        match pods.log_stream(pod, &parameters).await {
            Ok(bytes) => Ok(Ok(lines(bytes, from))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Err(Answer::Absent)),
            Err(kube::Error::Api(status)) => Ok(Err(Answer::Refused(status.code, status.message))),
            Err(error) => Err(self.silent(&format!("GET the log of Pod {namespace}/{pod}"), &error).into()),
        }
    }
}

/// The lines of a stream behind a place, without their times and their ends; the last one may have no end.
fn lines(bytes: impl AsyncBufRead, from: Place) -> impl Stream<Item = anyhow::Result<(String, Place)>> {
    futures::stream::try_unfold((Box::pin(bytes), Place::default()), move |(mut bytes, mut place)| async move {
        loop {
            let mut line = Vec::new();
            if bytes.read_until(b'\n', &mut line).await? == 0 {
                return anyhow::Ok(None);
            }
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
            let timed = line.split_once(' ').and_then(|(at, text)| Some((at.parse::<Timestamp>().ok()?, text)));
            let text = timed.map_or(&*line, |(_, text)| text).to_owned();
            place = place.behind(timed.map(|(at, _)| at));
            if place > from {
                return Ok(Some(((text, place), (bytes, place))));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::{Place, lines};

    async fn read(bytes: &[u8], from: Place) -> (Vec<String>, Place) {
        let lines: Vec<_> = lines(bytes, from).try_collect().await.unwrap();
        let last = lines.last().map_or(from, |(_, place)| *place);
        (lines.into_iter().map(|(text, _)| text).collect(), last)
    }

    #[tokio::test]
    async fn any_bytes_are_lines() {
        let bytes = b"2026-05-01T00:00:00.5Z a\n2026-05-01T00:00:00.5Z \n2026-05-01T00:00:01Z b c\r\nno log\n\n\
            2026-05-01T02:00:02+02:00 \xffc\rd";
        let (texts, last) = read(bytes, Place::default()).await;
        assert_eq!(texts, ["a", "", "b c", "no log", "", "\u{fffd}c\rd"]);
        assert_eq!(last.since().unwrap().to_string(), "2026-05-01T00:00:02Z");
        assert!(read(b"", Place::default()).await.0.is_empty());
    }

    #[tokio::test]
    async fn a_second_read_begins_behind_the_first() {
        let all = b"2026-05-01T00:00:00.1Z a\n2026-05-01T00:00:00.9Z b\n2026-05-01T00:00:00.9Z c\n\
            2026-05-01T00:00:00.9Z d\n2026-05-01T00:00:01Z e\n";
        let (texts, place) = read(&all[..75], Place::default()).await;
        assert_eq!(texts, ["a", "b", "c"]);
        assert_eq!(place.since().unwrap().to_string(), "2026-05-01T00:00:00Z", "not the next second");
        let (texts, place) = read(all, place).await;
        assert_eq!(texts, ["d", "e"]);
        assert!(read(all, place).await.0.is_empty());
    }
}
