//! Files that are read again and again: when a changed content is to be taken seriously.
//!
//! In: readings. Out: each new content once, when two readings in a row agree, so that a writer who is not atomic is not
//! caught half-way. Polled, because the kubelet replaces a symlink above the files, which a watch on them does not see. Promise: of a file
//! nothing is read beyond [`LARGEST`], so that a wrong one is refused as any other, and takes no process along.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

/// How often files are read.
pub(super) const POLL: Duration = Duration::from_millis(100);
/// The largest file that is read, in bytes: what is mounted of a Secret or ConfigMap is no larger.
pub(super) const LARGEST: usize = 1 << 20;

/// The content of a file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(LARGEST as u64 + 1).read_to_end(&mut content)?;
    if content.len() > LARGEST {
        let message = format!("it has more than the {LARGEST} bytes that are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(content)
}

/// The same, while others go on.
pub(super) async fn read_aside(path: &Path) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    let content = tokio::task::spawn_blocking(move || read(&path)).await;
    content.unwrap_or_else(|ended| Err(io::Error::other(ended)))
}

/// One content, followed.
pub(super) struct Polled<T> {
    in_use: Option<T>,
    /// The last reading that differed, and whether it has been handed out.
    candidate: Option<(Result<T, String>, bool)>,
}

impl<T: Clone + PartialEq> Polled<T> {
    /// Follows from `in_use` on.
    pub(super) fn new(in_use: T) -> Polled<T> {
        Polled { in_use: Some(in_use), candidate: None }
    }

    /// Follows while nothing is in use: the first content, too, is one to be judged.
    pub(super) fn unused() -> Polled<T> {
        Polled { in_use: None, candidate: None }
    }

    /// Takes in a reading; gives a new content, or a new reason why there is none, to be judged now.
    pub(super) fn settled(&mut self, reading: Result<T, String>) -> Option<Result<T, String>> {
        if reading.as_ref().is_ok_and(|reading| self.in_use.as_ref() == Some(reading)) {
            self.candidate = None;
            return None;
        }
        match &mut self.candidate {
            Some((candidate, judged)) if *candidate == reading => (!std::mem::replace(judged, true)).then_some(reading),
            candidate => {
                *candidate = Some((reading, false));
                None
            }
        }
    }

    /// The content was taken into use.
    pub(super) fn accept(&mut self, content: T) {
        self.in_use = Some(content);
        self.candidate = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_counts_when_it_is_read_twice_and_is_judged_once() {
        let mut polled = Polled::new(1);
        let gone = || Err("gone".to_owned());
        type Reading = Result<i32, String>;
        let rows: [(Reading, Option<Reading>); 9] = [
            (Ok(1), None),
            (Ok(2), None),
            (Ok(3), None),
            (Ok(3), Some(Ok(3))),
            (Ok(3), None),
            (gone(), None),
            (gone(), Some(gone())),
            (gone(), None),
            (Ok(1), None),
        ];
        for (reading, expected) in rows {
            assert_eq!(polled.settled(reading.clone()), expected, "{reading:?}");
        }
        assert_eq!(polled.settled(Ok(3)), None, "it came back, and is a change again");
        assert_eq!(polled.settled(Ok(3)), Some(Ok(3)));
        polled.accept(3);
        assert_eq!(polled.settled(Ok(3)), None);
    }

    #[tokio::test]
    async fn a_file_is_read_up_to_its_bound_and_a_larger_one_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tls.crt");
        for (bytes, is_read) in [(0, true), (LARGEST, true), (LARGEST + 1, false)] {
            std::fs::write(&path, vec![b' '; bytes]).unwrap();
            for read in [read(&path), read_aside(&path).await] {
                match read {
                    Ok(content) => assert!(is_read && content.len() == bytes),
                    Err(error) => assert!(!is_read && error.to_string().contains("1048576 bytes"), "{error}"),
                }
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_aside(&path).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        // A file without an end, as a link to the wrong place gives it.
        assert!(read(Path::new("/dev/zero")).is_err());
    }
}
