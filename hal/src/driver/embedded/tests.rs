use super::archive::{self, SourceKey};
use super::*;
use crate::source::Spec;
use crate::source::catalogue::catalogue;

fn target(text: &str) -> Target {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn fit(code: &str, device: &str) -> Option<u32> {
    target(code).fit(&target(device))
}

#[test]
fn targets_are_read_and_written_alike() {
    for text in ["sm_53", "sm_90", "sm_90a", "sm_100", "sm_120f", "gfx803", "gfx90a", "gfx1201"] {
        assert_eq!(target(text).to_string(), text);
    }
    assert_eq!(target("gfx90a:xnack-").to_string(), "gfx90a:xnack-");
    assert_eq!(target("gfx90a:xnack-:sramecc+").to_string(), "gfx90a:sramecc+:xnack-");
    let capability = Target::Cuda { major: 12, minor: 1, suffix: None };
    assert_eq!(target("sm_121"), capability);
}

#[test]
fn what_is_no_target_is_refused_with_what_is_allowed() {
    let refused = [
        "",
        "foo",
        "sm_",
        "sm_9",
        "sm_1000",
        "sm_9x",
        "sm_90aa",
        "sm_90b",
        "SM_90",
        "90",
        "gfx",
        "gfx9",
        "gfx90",
        "gfx90g",
        "gfx90A",
        "gfx10300",
        "gfx90a:",
        "gfx90a:xnack",
        "gfx90a:wave+",
        "gfx90a:xnack+:xnack-",
        "gfx90a xnack-",
        "gfxé1",
        "smé",
    ];
    for text in refused {
        let error = text.parse::<Target>().expect_err(text);
        let detail = error.detail();
        assert!(detail.contains(&format!("{text:?}")) && detail.contains(TARGETS), "{detail}");
    }
}

#[test]
fn lists_take_commas_semicolons_and_blanks() {
    let names = |list: &str| -> Vec<String> {
        Target::parse_list(list).expect(list).iter().map(Target::to_string).collect()
    };
    assert_eq!(
        names(" gfx90a ,sm_90;; gfx90a\tgfx90a:xnack- "),
        ["gfx90a", "sm_90", "gfx90a:xnack-"]
    );
    assert_eq!(names(" ; "), [""; 0]);
    assert!(Target::parse_list("gfx90a,foo").is_err());
}

#[test]
fn nvidia_devices_run_code_of_their_major_version_and_no_newer_minor() {
    assert!(fit("sm_80", "sm_86") < fit("sm_86", "sm_86"));
    for (code, device) in [("sm_90", "sm_90"), ("sm_80", "sm_89"), ("sm_120", "sm_121")] {
        assert!(fit(code, device).is_some(), "{code} on {device}");
    }
    for (code, device) in [("sm_86", "sm_80"), ("sm_80", "sm_90"), ("sm_90", "sm_100")] {
        assert_eq!(fit(code, device), None, "{code} on {device}");
    }
    // Code of one architecture alone, and integrated GPUs.
    assert!(fit("sm_90", "sm_90") < fit("sm_90a", "sm_90"));
    for (code, device) in [("sm_80", "sm_87"), ("sm_87", "sm_89"), ("sm_100a", "sm_103")] {
        assert_eq!(fit(code, device), None, "{code} on {device}");
    }
    assert!(fit("sm_87", "sm_87").is_some());
}

#[test]
fn amd_devices_run_code_whose_features_are_theirs() {
    let device = "gfx90a:sramecc+:xnack-";
    let names = ["gfx90a", "gfx90a:xnack-", "gfx90a:sramecc+:xnack-"];
    let fits = names.map(|code| fit(code, device));
    assert!(fits.iter().all(Option::is_some) && fits.is_sorted(), "{fits:?}");
    for code in ["gfx90a:xnack+", "gfx90a:sramecc-:xnack-", "gfx908", "gfx90c", "sm_90"] {
        assert_eq!(fit(code, device), None, "{code}");
    }
    // A device that does not say how a feature is set runs what leaves it open.
    assert!(fit("gfx90a", "gfx90a").is_some());
    assert_eq!(fit("gfx90a:xnack-", "gfx90a"), None);
    assert!(fit("gfx1030", "gfx1030").is_some());
}

/// Two specifications and another.
fn specs() -> [Spec; 3] {
    let groups = catalogue();
    [0, 1, 2].map(|group| groups[group].plans[0].spec())
}

fn packed() -> (&'static [u8], [Spec; 3], Vec<u8>) {
    let [a, b, other] = specs();
    let code: Vec<u8> = (0..100_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
    let objects = [PackedObject::new(&[other], b"small"), PackedObject::new(&[a, b], &code)];
    (pack(&objects).leak(), [a, b, other], code)
}

#[test]
fn what_is_packed_is_found_by_its_source() {
    let (archive, [a, b, other], code) = packed();
    let embedded = EmbeddedTarget::new("gfx90a", "a compiler", archive);
    assert_eq!((embedded.kernels(), embedded.bytes()), (3, archive.len()));
    assert!(embedded.bytes() < code.len() / 2);
    assert_eq!(embedded.code(&a.source()), Some(code.clone()));
    assert_eq!(embedded.code(&b.source()), Some(code));
    assert_eq!(embedded.code(&other.source()).as_deref(), Some(&b"small"[..]));
    // Another version's source has the same kernels' names.
    assert_eq!(embedded.code(&a.source().replace("    ", "\t")), None);
    let unknown = catalogue()[3].plans[0].spec();
    assert_eq!(embedded.code(&unknown.source()), None);
}

#[test]
fn what_is_damaged_is_no_code() {
    let (whole, [a, ..], _) = packed();
    let key = SourceKey::of(&a.source());
    let object = archive::find(whole, key).expect("it is there");
    for length in (0..whole.len()).step_by(7) {
        let cut = &whole[..length];
        assert_eq!(archive::unpack(cut, object), None);
        archive::find(cut, key);
    }
    for at in 0..400.min(whole.len()) {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 0xff;
        if let Some(object) = archive::find(&damaged, key) {
            archive::unpack(&damaged, object);
        }
    }
    assert_eq!(EmbeddedTarget::new("sm_90", "", b"nothing of the kind").kernels(), 0);
    assert_eq!(EmbeddedTarget::new("sm_90", "", b"").kernels(), 0);
}

#[test]
fn devices_get_the_code_that_suits_them_best() {
    let [a, _, other] = specs();
    let object = |code: &'static [u8]| pack(&[PackedObject::new(&[a], code)]).leak() as &[u8];
    let (plain, exact, newer) = (object(b"plain"), object(b"exact"), object(b"newer"));
    let targets = [
        EmbeddedTarget::new("gfx90a", "", plain),
        EmbeddedTarget::new("gfx90a:xnack-", "", exact),
        EmbeddedTarget::new("sm_70", "", newer),
    ];
    register(&targets);
    register(&targets);
    let source = a.source();
    let code = |device: &str| Found::of(device, &source).and_then(|found| found.code());
    assert_eq!(code("gfx90a:sramecc+:xnack-").as_deref(), Some(&b"exact"[..]));
    assert_eq!(code("gfx90a:sramecc+:xnack+").as_deref(), Some(&b"plain"[..]));
    assert_eq!(code("sm_75").as_deref(), Some(&b"newer"[..]));
    assert_eq!(code("sm_60"), None);
    assert_eq!(code("the processor"), None);
    assert!(Found::of("sm_75", &other.source()).is_none());
    assert_eq!(registered().iter().filter(|name| **name == "sm_70").count(), 1);
}
