//! What the compiler cannot say of the house, held by reading `src/`. Who may use whom stands in the rooms' manifests
//! (`src/*/Cargo.toml`), and cargo holds it.
//!
//! Pure rooms may not name what reads a clock, a file, the environment or the network, and have no async functions;
//! no controller names another one's folder; `anyhow` stays in the command line.

use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// Rooms without I/O, clock, environment or async.
const PURE: &[&str] = &["domain", "api", "crypto", "store", "config", "pipelines", "workloads", "policy", "admission"];

/// Files of working rooms that are pure all the same: plans, and those whose header says [`SAYS_PURE`] in its first paragraph.
const PURE_FILE_NAMES: &[&str] = &["plan.rs"];
/// What a header says of such a file.
const SAYS_PURE: &str = "; pure";

/// What is data, although it stands where I/O does: an address is no socket.
const DATA: &[&str] = &["std::net::IpAddr", "std::net::Ipv4Addr", "std::net::Ipv6Addr", "std::net::SocketAddr"];

/// What a pure room may not name.
const IMPURE: &[&str] = &[
    "tokio",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "std::time::SystemTime",
    "std::time::Instant",
    "kube::Client",
    "kube::client",
    "kube::Api",
    "kube::api::Api",
    "kube::runtime",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "Timestamp::now",
    "Zoned::now",
    "tracing",
    "hyper",
    "axum",
    "rustls",
];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[derive(Default)]
struct Paths {
    named: Vec<String>,
    async_functions: Vec<String>,
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test")))
    })
}

fn flatten(tree: &syn::UseTree, prefix: &str, out: &mut Vec<String>) {
    let join = |name: String| if prefix.is_empty() { name } else { format!("{prefix}::{name}") };
    match tree {
        syn::UseTree::Path(path) => flatten(&path.tree, &join(path.ident.to_string()), out),
        syn::UseTree::Name(name) => out.push(join(name.ident.to_string())),
        syn::UseTree::Rename(name) => out.push(join(name.ident.to_string())),
        syn::UseTree::Glob(_) => out.push(join("*".to_owned())),
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| flatten(item, prefix, out)),
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            flatten(&item.tree, "", &mut self.named);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.named.push(segments.join("::"));
        syn::visit::visit_path(self, path);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if signature.asyncness.is_some() {
            self.async_functions.push(signature.ident.to_string());
        }
        syn::visit::visit_signature(self, signature);
    }
}

/// Whether the first paragraph of a file's header says that it is pure.
fn says_pure(text: &str) -> bool {
    let paragraph = text.lines().map_while(|line| line.strip_prefix("//!")).take_while(|line| !line.is_empty());
    paragraph.collect::<Vec<_>>().join("").contains(SAYS_PURE)
}

struct Room {
    file: String,
    name: String,
    pure: bool,
    paths: Paths,
}

fn rooms() -> Vec<Room> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let rooms: Vec<Room> = files
        .iter()
        .filter_map(|path| {
            let below = path.strip_prefix(&root).unwrap();
            let first = below.iter().next().unwrap().to_string_lossy().into_owned();
            let file_name = below.file_name().unwrap().to_string_lossy().into_owned();
            if below.iter().count() < 2 || file_name == "tests.rs" || below.iter().any(|part| part == "tests") {
                return None;
            }
            let mut paths = Paths::default();
            let text = std::fs::read_to_string(path).unwrap();
            paths.visit_file(&syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
            let pure =
                PURE.contains(&first.as_str()) || PURE_FILE_NAMES.contains(&file_name.as_str()) || says_pure(&text);
            Some(Room { file: below.display().to_string(), name: first, pure, paths })
        })
        .collect();
    assert!(rooms.len() > 10, "src/ was not found");
    let by_header = |room: &&Room| room.pure && !PURE.contains(&room.name.as_str()) && !room.file.ends_with("plan.rs");
    assert!(rooms.iter().filter(by_header).count() > 5, "no header says {SAYS_PURE}");
    rooms
}

/// What every controller may know of: the loop, conditions, its rights, whom to trust, what parametrises policies, what objects refer to, and the few looks at another one. Nothing else of the room is another one's business.
const SHARED_BY_CONTROLLERS: &[&str] =
    &["scaffold", "conditions", "looks", "parameters", "rbac", "references", "trust"];

/// Folders of the room that are no controller: what tests all of them together.
const NO_CONTROLLERS: &[&str] = &["simulation"];

/// Whether `module` is another controller than the one whose folder `file` is in.
fn is_of_another(file: &str, module: Option<&str>) -> bool {
    let folder = file.strip_prefix("controllers/").and_then(|below| below.split_once('/')).map(|(folder, _)| folder);
    let (Some(own), Some(module)) = (folder, module) else { return false };
    module.starts_with(|letter: char| letter.is_ascii_lowercase())
        && module != own
        && !NO_CONTROLLERS.contains(&own)
        && !SHARED_BY_CONTROLLERS.contains(&module)
}

#[test]
fn no_controller_names_another() {
    let mut wrong = Vec::new();
    for room in rooms().into_iter().filter(|room| room.name == "controllers") {
        for path in &room.paths.named {
            let mut segments = path.split("::");
            if (segments.next(), segments.next()) == (Some("crate"), Some("controllers"))
                && is_of_another(&room.file, segments.next())
            {
                wrong.push(format!("{} imports {path}", room.file));
            }
        }
    }
    assert!(wrong.is_empty(), "another controller's folder:\n{}", wrong.join("\n"));
}

/// The part of the room that drives controllers and knows none of them. What tests begin with stands beside it.
const ENGINE: &str = "controllers/scaffold/";
const OF_TESTS: &str = "controllers/scaffold/fixtures.rs";

/// Whether a path in a file of the engine leads to what is outside of it in the room, or makes up a controller's name.
fn leaves_the_engine(file: &str, path: &str) -> bool {
    let modules = file.strip_suffix("/mod.rs").unwrap_or(file).matches('/').count();
    let climbs = path.split("::").take_while(|segment| *segment == "super").count();
    // `super` alone is who may see an item.
    let climbs = if path.split("::").count() > climbs { climbs } else { 0 };
    let outside = path.strip_prefix("crate::controllers::").is_some_and(|below| !below.starts_with("scaffold"));
    outside || climbs >= modules || path == "Name::new" || path.ends_with("::Name::new")
}

#[test]
fn the_engine_names_no_controller() {
    for (file, path, leaves) in [
        ("controllers/scaffold/run/machine.rs", "crate::controllers::gate::memory::Memory", true),
        ("controllers/scaffold/run/machine.rs", "crate::controllers::scaffold::memory::Memory", false),
        ("controllers/scaffold/run/machine.rs", "super::super::memory::Memory", false),
        ("controllers/scaffold/run/machine.rs", "super::super::super::gate::memory::Memory", true),
        ("controllers/scaffold/memory.rs", "super::super::gate::memory::Memory", true),
        ("controllers/scaffold/mod.rs", "super::gate", true),
        ("controllers/scaffold/mod.rs", "super", false),
        ("controllers/scaffold/lane/mod.rs", "super::plan::Item", false),
        ("controllers/scaffold/metrics.rs", "Name::new", true),
    ] {
        assert_eq!(leaves_the_engine(file, path), leaves, "{path} in {file}");
    }
    let engine = |room: &Room| room.file.starts_with(ENGINE) && room.file != OF_TESTS;
    let files: Vec<_> = rooms().into_iter().filter(engine).collect();
    assert!(files.len() > 15, "{ENGINE} was not found");
    let of = |room: &Room| {
        let wrong = room.paths.named.iter().filter(|path| leaves_the_engine(&room.file, path));
        wrong.map(|path| format!("{} names {path}", room.file)).collect::<Vec<_>>()
    };
    let wrong: Vec<_> = files.iter().flat_map(of).collect();
    assert!(wrong.is_empty(), "the engine knows a controller:\n{}", wrong.join("\n"));
}

#[test]
fn manifests_of_pure_rooms_bring_no_client_and_no_runtime() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for room in PURE {
        let text = std::fs::read_to_string(root.join(room).join("Cargo.toml")).unwrap();
        let named: Vec<_> =
            text.lines().filter_map(|line| line.split_once(['.', ' ', '='])).map(|(name, _)| name).collect();
        assert!(named.contains(&"edition"), "{room}: {text}");
        for bad in ["tokio", "hyper", "axum", "tower", "rustls", "tracing", "anyhow"] {
            assert!(
                !named.iter().any(|name| *name == bad || name.starts_with(&format!("{bad}-"))),
                "{room} uses {bad}"
            );
        }
    }
}

#[test]
fn pure_rooms_are_pure() {
    let mut wrong = Vec::new();
    for room in rooms().into_iter().filter(|room| room.pure) {
        for path in &room.paths.named {
            let is_data = DATA.contains(&path.as_str());
            if !is_data && IMPURE.iter().any(|bad| path == bad || path.starts_with(&format!("{bad}::"))) {
                wrong.push(format!("{} names {path}", room.file));
            }
        }
        wrong.extend(room.paths.async_functions.iter().map(|name| format!("{}: async fn {name}", room.file)));
    }
    assert!(wrong.is_empty(), "impure:\n{}", wrong.join("\n"));
}

#[test]
fn anyhow_stays_in_the_command_line() {
    let wrong: Vec<_> = rooms()
        .into_iter()
        .filter(|room| room.name != "cli" && room.paths.named.iter().any(|path| path.starts_with("anyhow")))
        .map(|room| room.file)
        .collect();
    assert!(wrong.is_empty(), "anyhow outside cli: {wrong:?}");
}

/// `docs/architecture.md` says of every crate which others it uses, as its manifest does.
#[test]
fn the_picture_is_that_of_the_manifests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let mut crates = 0;
    for entry in std::fs::read_dir(root.join("src")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let (_, below) = manifest.split_once("[dependencies]").unwrap();
        let own = below.lines().take_while(|line| !line.starts_with('['));
        let mut used: Vec<_> = own.filter_map(|line| line.strip_prefix("drawbridge-")?.split('.').next()).collect();
        used.sort_unstable();
        let used = if used.is_empty() { "nothing".to_owned() } else { used.join(", ") };
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_default();
        assert!(row.ends_with(&format!("| {used} |")), "{name} uses {used}, but docs/architecture.md says: {row}");
        crates += 1;
    }
    assert!(crates >= 10, "src/ was not found");
}
