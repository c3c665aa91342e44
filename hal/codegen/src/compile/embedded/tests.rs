use super::archive::{self, SourceKey};
use super::*;
use crate::source::KernelSpec;
use crate::source::catalogue::catalogue;

/// Two specifications and another.
fn specs() -> [KernelSpec; 3] {
    let groups = catalogue();
    [0, 1, 2].map(|group| groups[group].plans[0].spec())
}

/// Code that no device is given.
fn target(name: &'static str, compiler: &'static str, archive: &'static [u8]) -> EmbeddedTarget {
    // SAFETY: it is looked up, and never run.
    unsafe { EmbeddedTarget::new(name, compiler, archive) }
}

fn packed() -> (&'static [u8], [KernelSpec; 3], Vec<u8>) {
    let [a, b, other] = specs();
    let code: Vec<u8> = (0..100_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
    let objects = [PackedObject::new(&[other], b"small"), PackedObject::new(&[a, b], &code)];
    (pack(&objects).leak(), [a, b, other], code)
}

#[test]
fn what_is_packed_is_found_by_its_source() {
    let (archive, [a, b, other], code) = packed();
    let embedded = target("gfx90a", "a compiler", archive);
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
    assert_eq!(target("sm_90", "", b"nothing of the kind").kernels(), 0);
    assert_eq!(target("sm_90", "", b"").kernels(), 0);
}

#[test]
fn devices_get_the_code_that_suits_them_best() {
    let [a, _, other] = specs();
    let object = |code: &'static [u8]| pack(&[PackedObject::new(&[a], code)]).leak() as &[u8];
    let (plain, exact, newer) = (object(b"plain"), object(b"exact"), object(b"newer"));
    let targets = [
        target("gfx90a", "", plain),
        target("gfx90a:xnack-", "", exact),
        target("sm_70", "", newer),
    ];
    register(&targets);
    register(&targets);
    let source = a.source();
    let code = |device: &str| EmbeddedObject::best(device, &source).and_then(|found| found.code());
    assert_eq!(code("gfx90a:sramecc+:xnack-").as_deref(), Some(&b"exact"[..]));
    assert_eq!(code("gfx90a:sramecc+:xnack+").as_deref(), Some(&b"plain"[..]));
    assert_eq!(code("sm_75").as_deref(), Some(&b"newer"[..]));
    assert_eq!(code("sm_60"), None);
    assert_eq!(code("the processor"), None);
    assert!(EmbeddedObject::best("sm_75", &other.source()).is_none());
    assert_eq!(registered().iter().filter(|name| **name == "sm_70").count(), 1);
}
