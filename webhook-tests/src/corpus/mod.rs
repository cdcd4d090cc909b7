//! The golden corpus: one folder per case, read once, judged by every runner.
//!
//! ```text
//! corpus/base/*.yaml ─┐
//! case/pod.yaml ──────┼─► Case { review bytes, fixture, expectation } ─► evaluate | router | API server ─► Answer
//! case/config.yaml ───┘                                                                                     │
//! case/expect.yaml, expected.yaml ◄───────────────────── expect::judge ◄────────────────────────────────────┘
//! ```
//!
//! In: the folder `webhook-tests/corpus`. Out: cases by name, sorted. Promises: a file that no case uses, a key that
//! nobody reads and a case without expectation are errors, so that nothing in the folder can rot unseen.
//! `webhook-tests/corpus/README.md` says how to add a case.

pub mod answer;
pub mod expand;
pub mod expect;
pub mod fixture;
pub mod matching;
pub mod path;
pub mod place;
pub mod reinvoke;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

use expect::Expectation;
use fixture::{Fixture, Inputs};

/// What a case may consist of; anything else in its folder is an error.
const KNOWN_FILES: [&str; 5] = ["pod.yaml", "review.json", "config.yaml", "expect.yaml", GOLDEN];
/// The complete object after the patch.
const GOLDEN: &str = "expected.yaml";
/// Folder of the files that cases start from.
const BASE: &str = "base";
/// The environment variable that rewrites golden files.
pub const REFRESH: &str = "CORPUS_REFRESH";

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// `<area>/<case>`.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The AdmissionReview, as the API server would send it.
    pub review: String,
    /// The object under review; `None` when the case is a review of something unreadable.
    pub object: Option<Value>,
    /// Files and cluster, before they are parsed by the product.
    pub fixture: Fixture,
    /// What must come out.
    pub expect: Expectation,
}

impl Case {
    /// The golden file of this case.
    #[must_use]
    pub fn golden(&self) -> PathBuf {
        self.folder.join(GOLDEN)
    }
}

/// The folder with all cases.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Every case, by name.
///
/// # Errors
/// A file that cannot be read, is not understood, or is used by nobody.
pub fn load() -> anyhow::Result<Vec<Case>> {
    let root = root();
    let mut base = Base::read(&root.join(BASE))?;
    let mut cases = Vec::new();
    for area in folders(&root)? {
        if area.ends_with(BASE) {
            continue;
        }
        for folder in folders(&area)? {
            let name = folder.strip_prefix(&root).unwrap_or(&folder).display().to_string();
            cases.push(read_case(&name, folder, &mut base).with_context(|| format!("case {name}"))?);
        }
    }
    let unused = base.unused();
    if !unused.is_empty() {
        bail!("no case uses corpus/{BASE}/{}", unused.join(", "));
    }
    Ok(cases)
}

/// The files that cases start from.
struct Base {
    folder: PathBuf,
    present: BTreeSet<String>,
    used: BTreeSet<String>,
}

impl Base {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut present = BTreeSet::new();
        for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            present.insert(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(Self { folder: folder.to_owned(), present, used: BTreeSet::new() })
    }

    fn yaml(&mut self, file: &str) -> anyhow::Result<Value> {
        self.used.insert(file.to_owned());
        yaml(&self.folder.join(file))
    }

    fn unused(&self) -> Vec<String> {
        self.present.difference(&self.used).cloned().collect()
    }
}

fn folders(parent: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(parent).with_context(|| parent.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        } else if parent != root() || entry.file_name() != "README.md" {
            bail!("{}: no case uses this file", entry.path().display());
        }
    }
    found.sort();
    Ok(found)
}

fn read_case(name: &str, folder: PathBuf, base: &mut Base) -> anyhow::Result<Case> {
    for entry in std::fs::read_dir(&folder)? {
        let file = entry?.file_name();
        if !KNOWN_FILES.iter().any(|known| *known == file) {
            bail!("{} is not a file of a case; known are {}", file.display(), KNOWN_FILES.join(", "));
        }
    }
    let fixture = read_fixture(&folder, base)?;
    let mut expect: Expectation = typed(yaml(&folder.join("expect.yaml"))?, "expect.yaml")?;
    let golden = folder.join(GOLDEN);
    if golden.exists() {
        expect.golden = Some(yaml(&golden)?);
    }
    expect.check()?;
    let raw = folder.join("review.json");
    let pod = folder.join("pod.yaml");
    let (review, object) = match (raw.exists(), pod.exists()) {
        (true, true) => bail!("review.json and pod.yaml exclude each other"),
        (true, false) => {
            let text = std::fs::read_to_string(&raw)?;
            let object =
                serde_json::from_str::<Value>(&text).ok().and_then(|review| review.pointer("/request/object").cloned());
            (text, object)
        }
        (false, has_pod) => {
            let own = if has_pod { Some(yaml(&pod)?) } else { None };
            let object = read_object(own, base)?;
            (fixture.request.review(name, &object), Some(object))
        }
    };
    Ok(Case { name: name.to_owned(), folder, review, object, fixture, expect })
}

fn read_fixture(folder: &Path, base: &mut Base) -> anyhow::Result<Fixture> {
    let file = folder.join("config.yaml");
    let own: Inputs = if file.exists() { typed(yaml(&file)?, "config.yaml")? } else { Inputs::default() };
    let start = own.base.clone().unwrap_or_else(|| "cluster".to_owned());
    let mut chain = vec![own];
    let mut next = Some(start);
    while let Some(name) = next {
        let inputs: Inputs = typed(base.yaml(&format!("{name}.yaml"))?, &name)?;
        next = inputs.base.clone();
        chain.push(inputs);
    }
    Fixture::overlaid(chain.into_iter().rev())
}

/// `pod.yaml` is a whole object, or `{base: <file>, merge: <RFC 7396 patch>}`; without it the base Pod is reviewed.
fn read_object(own: Option<Value>, base: &mut Base) -> anyhow::Result<Value> {
    let Some(own) = own else { return base.yaml("pod.yaml") };
    let Some(change) = own.get("merge") else { return Ok(own) };
    let start = own.get("base").and_then(Value::as_str).unwrap_or("pod");
    let mut object = base.yaml(&format!("{start}.yaml"))?;
    json_patch::merge(&mut object, change);
    Ok(object)
}

fn yaml(file: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let value = serde_saphyr::from_str(&text).with_context(|| file.display().to_string())?;
    expand::expand(value).with_context(|| file.display().to_string())
}

fn typed<T: serde::de::DeserializeOwned>(value: Value, file: &str) -> anyhow::Result<T> {
    serde_json::from_value(value).with_context(|| file.to_owned())
}
