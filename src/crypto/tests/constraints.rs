//! An authority's name constraints bind every certificate below it, not one of them.

use rcgen::{CertificateParams, GeneralSubtree, NameConstraints};

use super::forge::{Party, authority, host, svid};
use super::{bundle, judge, words};
use crate::Profile;

fn permits(tree: &str) -> impl FnOnce(&mut CertificateParams) {
    let permitted_subtrees = vec![GeneralSubtree::DnsName(tree.to_owned())];
    |params| params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() })
}

fn excludes(tree: &str) -> impl FnOnce(&mut CertificateParams) {
    let excluded_subtrees = vec![GeneralSubtree::DnsName(tree.to_owned())];
    |params| params.name_constraints = Some(NameConstraints { permitted_subtrees: Vec::new(), excluded_subtrees })
}

fn verdict(root: &Party, chain: &[&Party]) -> String {
    let signed = chain[0].signs(serde_json::json!({"name": "Weather Agent"}), &chain[1..], Profile::KagentiV2);
    words(&judge(&signed, &bundle(&root.pem(), Some("example.org")).unwrap())).join(" ")
}

#[test]
fn case_97_constraints_bind_all_below_and_not_any() {
    let inside = |params: &mut CertificateParams| params.subject_alt_names.push(host("a.example.org"));
    let outside = |params: &mut CertificateParams| params.subject_alt_names.push(host("other.org"));
    let plain = |_: &mut CertificateParams| {};
    type Change = fn(&mut CertificateParams);
    let names: [(&str, Change, bool); 3] =
        [("none", plain, true), ("inside", inside, true), ("outside", outside, false)];
    for (middle_name, middle_change, middle_good) in names {
        for (leaf_name, leaf_change, leaf_good) in names {
            let root = authority("root", None, permits("example.org"));
            let middle = authority("middle", Some(&root), middle_change);
            let leaf = svid(&middle, leaf_change);
            let wanted = if middle_good && leaf_good { "Verified" } else { "NameConstraint" };
            assert_eq!(verdict(&root, &[&leaf, &middle]), wanted, "authority {middle_name}, leaf {leaf_name}");
        }
    }
    let root = authority("root", None, excludes("other.org"));
    let middle = authority("middle", Some(&root), outside);
    assert_eq!(verdict(&root, &[&svid(&middle, plain), &middle]), "NameConstraint", "the authority alone is excluded");
    let middle = authority("middle", Some(&root), plain);
    assert_eq!(verdict(&root, &[&svid(&middle, plain), &middle]), "Verified");
    // An authority in the middle binds what is below it, and not itself.
    let root = authority("root", None, plain);
    let middle = authority("middle", Some(&root), |params| {
        params.subject_alt_names.push(host("other.org"));
        permits("example.org")(params);
    });
    assert_eq!(verdict(&root, &[&svid(&middle, plain), &middle]), "Verified");
}
