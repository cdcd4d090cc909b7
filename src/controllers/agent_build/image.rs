//! The image that Agents run, from what a pipeline told about it.

use crate::api::syntax;
use crate::domain::reason::Reason;
use crate::pipelines::request::ImageParts;

/// What was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Told<'a> {
    /// The image.
    pub(super) image: Option<&'a str>,
    /// Its digest.
    pub(super) digest: Option<&'a str>,
    /// The parameter of the run that names it.
    pub(super) parameter: Option<&'a str>,
}

/// What was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Built {
    /// By digest where one was told, else by tag.
    pub(super) image: String,
    /// By tag, where one is known.
    pub(super) tag: Option<String>,
    /// The digest.
    pub(super) digest: Option<String>,
}

/// Repository, tag, digest.
fn split(reference: &str) -> (&str, Option<&str>, Option<&str>) {
    let (rest, digest) = reference.split_once('@').map_or((reference, None), |(rest, digest)| (rest, Some(digest)));
    match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag), digest),
        _ => (rest, None, digest),
    }
}

/// Whether a text is the digest of a manifest; what is none was not told (D-11).
pub(super) fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The image; or why there is none, in a word and a sentence. `output`: where the build says that it goes.
pub(super) fn built(output: Option<&ImageParts>, told: &Told<'_>) -> Result<Built, (Reason, String)> {
    let Some(reference) = told.image.or(told.parameter) else {
        return Err((Reason::NoImage, "nothing reported which image was made".to_owned()));
    };
    if !syntax::is_image_reference(reference) {
        let shown = crate::api::findings::shown(reference);
        let why = syntax::no_image(reference);
        return Err((Reason::NoImage, format!("what a task reported as its image {why}: {shown}")));
    }
    let (repository, tag, own_digest) = split(reference);
    if let Some(output) = output {
        let wanted = format!("{}/{}", output.registry, output.image);
        if repository != wanted {
            let message = format!("the pipeline made {reference}, which is not in {wanted} as the build says");
            return Err((Reason::UnexpectedImage, message));
        }
    }
    let digest = told.digest.filter(|digest| is_digest(digest)).or(own_digest.filter(|digest| is_digest(digest)));
    let of_parameter = told
        .parameter
        .filter(|text| syntax::is_image_reference(text) && split(text).0 == repository && split(text).1.is_some());
    let by_tag = match tag {
        Some(tag) => Some(format!("{repository}:{tag}")),
        None => of_parameter
            .map(|text| text.split('@').next().unwrap_or(text).to_owned())
            .or_else(|| output.filter(|output| !output.tag.is_empty()).map(ImageParts::reference)),
    };
    Ok(Built {
        image: match digest {
            Some(digest) => format!("{repository}@{digest}"),
            None => by_tag.clone().unwrap_or_else(|| reference.to_owned()),
        },
        tag: by_tag,
        digest: digest.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn parts() -> ImageParts {
        ImageParts { registry: "reg:5000/acme".into(), image: "weather".into(), tag: "v1".into() }
    }

    fn digest() -> String {
        format!("sha256:{}", "ab".repeat(32))
    }

    #[test]
    fn the_digest_wins_and_the_tag_is_kept() {
        let digest = digest();
        let by_digest = format!("reg:5000/acme/weather@{digest}");
        for (image, told) in [
            ("reg:5000/acme/weather:v2", Some(&*digest)),
            ("reg:5000/acme/weather", Some(&*digest)),
            (&*by_digest, None),
        ] {
            let told = Told { image: Some(image), digest: told, parameter: None };
            let built = built(Some(&parts()), &told).unwrap();
            assert_eq!((built.image, built.digest.as_deref()), (by_digest.clone(), Some(&*digest)));
            let tag = if image.ends_with("v2") { "v2" } else { "v1" };
            assert_eq!(built.tag, Some(format!("reg:5000/acme/weather:{tag}")));
        }
    }

    /// Case D-11: what is no digest is none.
    #[test]
    fn what_is_no_digest_is_none() {
        for digest in
            ["", "sha256:abc", "latest", &format!("sha256:{}", "AB".repeat(32)), &format!("md5:{}", "a".repeat(64))]
        {
            let told = Told { image: Some("reg:5000/acme/weather:v1"), digest: Some(digest), parameter: None };
            let built = built(Some(&parts()), &told).unwrap();
            assert_eq!((built.image.as_str(), built.digest), ("reg:5000/acme/weather:v1", None), "{digest}");
        }
    }

    /// The parameter is the user's text: one that is no image names no tag.
    #[test]
    fn a_parameter_that_is_no_image_says_nothing() {
        for parameter in ["reg:5000/acme/weather:", "reg:5000/acme/weather:v1:v2", "reg:5000/acme/weather:v1@x"] {
            let told =
                Told { image: Some("reg:5000/acme/weather"), digest: Some(&digest()), parameter: Some(parameter) };
            assert_eq!(built(None, &told).unwrap().tag, None, "{parameter}");
        }
    }

    #[test]
    fn only_the_repository_that_the_build_names_will_do() {
        for image in ["reg:5000/acme/weather2:v1", "weather:v1", "reg:5000/acme:v1", "reg:5000/acme/weather/x:v1"] {
            let told = Told { image: Some(image), ..Told::default() };
            assert_eq!(built(Some(&parts()), &told).unwrap_err().0, Reason::UnexpectedImage, "{image}");
            assert!(built(None, &told).is_ok(), "{image}");
        }
        for image in ["Not An Image", "reg/x\n", "--x", "a b", "reg:5000/acme/weather:v1 && rm"] {
            let told = Told { image: Some(image), ..Told::default() };
            assert_eq!(built(None, &told).unwrap_err().0, Reason::NoImage, "{image}");
        }
        assert_eq!(built(None, &Told::default()).unwrap_err().0, Reason::NoImage);
    }

    /// Tasks are anybody's, and so are the results that they write.
    fn told() -> impl Strategy<Value = Option<String>> {
        let name =
            select(vec!["reg:5000/acme/weather", "reg:5000/acme/weather2", "weather", "REG/x", "--x", "a//b", ""]);
        let tag = select(vec!["", ":v1", ":", ":v1:v2", "\n", " "]);
        let digest = select(vec!["", "@", "@sha256:abc", "@@", "@md5:00"]).prop_map(str::to_owned);
        let digest = prop_oneof![digest, Just(format!("@{}", self::digest())), Just(format!("@{}x", self::digest()))];
        let composed = (name, tag, digest).prop_map(|(name, tag, digest)| format!("{name}{tag}{digest}"));
        prop::option::of(prop_oneof![4 => composed, 1 => Just(self::digest()), 1 => ".{0,40}"])
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever is told: what Agents run is an image, in the place that the build names, by a digest that is one.
        #[test]
        fn what_is_told_never_becomes_anything_but_an_image_of_the_build(
            image in told(), told_digest in told(), parameter in told(), named in any::<bool>(),
        ) {
            let output = named.then(parts);
            let told = Told { image: image.as_deref(), digest: told_digest.as_deref(), parameter: parameter.as_deref() };
            let Ok(built) = built(output.as_ref(), &told) else { return Ok(()) };
            prop_assert!(syntax::is_image_reference(&built.image), "{}", built.image);
            prop_assert!(built.digest.as_deref().is_none_or(is_digest), "{:?}", built.digest);
            for image in [Some(&built.image), built.tag.as_ref()].into_iter().flatten().filter(|_| named) {
                prop_assert!(image.starts_with("reg:5000/acme/weather:") || image.starts_with("reg:5000/acme/weather@"), "{}", image);
            }
            if let Some(digest) = &built.digest {
                prop_assert!(built.image.ends_with(&format!("@{digest}")), "{}", built.image);
            }
            prop_assert!(built.tag.as_deref().is_none_or(|tag| syntax::is_image_reference(tag) && !tag.contains('@')), "{:?}", built.tag);
        }
    }
}
