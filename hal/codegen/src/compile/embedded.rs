//! Builtin operations that were compiled ahead of time and embedded in the program.
//!
//! The facade's build packs them ([`pack`]), and its registry registers them ([`register`]). A device
//! uses the code that fits it ([`Target::fit`]), and only for the exact source from which it was
//! compiled.

mod archive;
#[cfg(any(test, feature = "embedded"))]
mod packing;

#[cfg(any(test, feature = "embedded"))]
pub use packing::{pack, share};

use crate::compile::ptx::{PtxUnit, relative};
use crate::compile::target::Target;
use crate::source::KernelSpec;
use archive::{Place, SourceKey, find, kernels, module};
use hal::poison::Unpoisoned as _;
use std::sync::RwLock;
use std::{fmt, slice};

/// One compiled unit: its modules and their kernels.
#[derive(Clone, Debug, Default)]
pub struct PackedObject {
    modules: Vec<(Vec<SourceKey>, Vec<u8>)>,
    kernels: usize,
}

impl PackedObject {
    /// Returns the code of a unit made of these specifications, in one module.
    pub fn new(specs: &[KernelSpec], code: &[u8]) -> PackedObject {
        let mut object = PackedObject::default();
        object.add(specs, code.to_vec());
        object
    }

    /// Returns PTX of a unit made of these specifications, in a module for each.
    ///
    /// `None` if the text is not NVRTC's PTX with all of their kernels.
    pub fn of_ptx(specs: &[KernelSpec], text: &[u8]) -> Option<PackedObject> {
        let unit = PtxUnit::parse(std::str::from_utf8(text).ok()?)?;
        let mut object = PackedObject::default();
        for spec in specs {
            let text = unit.module(&spec.kernel_names())?;
            object.add(slice::from_ref(spec), relative(&text));
        }
        Some(object)
    }

    fn add(&mut self, specs: &[KernelSpec], code: Vec<u8>) {
        self.kernels += specs.iter().map(|spec| spec.kernel_names().len()).sum::<usize>();
        let keys = specs.iter().map(|spec| SourceKey::of(&spec.source())).collect();
        self.modules.push((keys, code));
    }

    #[cfg(any(test, feature = "embedded"))]
    fn code(&self) -> Vec<u8> {
        self.modules.iter().flat_map(|(_, code)| code).copied().collect()
    }
}

/// Code for one target.
#[derive(Clone, Copy)]
pub struct EmbeddedTarget {
    name: &'static str,
    compiler: &'static str,
    archives: &'static [&'static [u8]],
}

impl fmt::Debug for EmbeddedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kernels, bytes) = (self.kernel_count(), self.bytes());
        write!(f, "EmbeddedTarget({}, {kernels} kernels, {bytes} bytes)", self.name)
    }
}

impl EmbeddedTarget {
    /// Code for the target of this name (see [`Target`]) by a compiler. The first archive is what [`pack`] returned
    /// for the others, which are its bases.
    ///
    /// # Safety
    /// The compiler made each object of the archive from the source under which it is stored: devices run the
    /// object for that source, in operations that are safe.
    pub const unsafe fn new(
        name: &'static str,
        compiler: &'static str,
        archives: &'static [&'static [u8]],
    ) -> EmbeddedTarget {
        EmbeddedTarget { name, compiler, archives }
    }

    const fn archive(&self) -> &'static [u8] {
        match self.archives {
            [archive, ..] => archive,
            [] => &[],
        }
    }

    /// Returns the name of the target: `gfx90a:xnack-`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Name and version of the compiler.
    pub const fn compiler(&self) -> &'static str {
        self.compiler
    }

    /// The number of kernels.
    pub const fn kernel_count(&self) -> usize {
        kernels(self.archive())
    }

    /// Bytes in the program.
    pub const fn bytes(&self) -> usize {
        self.archive().len()
    }

    /// The code with the kernels of a specification's source, unpacked, if there is any.
    pub fn code(&self, source: &str) -> Option<Vec<u8>> {
        module(self.archives, find(self.archives, SourceKey::of(source))?)
    }
}

/// All registered code.
static REGISTERED: RwLock<Vec<EmbeddedTarget>> = RwLock::new(Vec::new());

/// Registers code for every device of the process, for operations that the device has not run yet.
/// Registering the same code again has no effect.
pub fn register(targets: &[EmbeddedTarget]) {
    let mut registered = REGISTERED.write().unpoisoned();
    for target in targets {
        if !registered.iter().any(|it| std::ptr::eq(it.archive(), target.archive())) {
            registered.push(*target);
        }
    }
}

/// The names of the targets that code was registered for.
pub(super) fn registered() -> Vec<&'static str> {
    let registered = REGISTERED.read().unpoisoned();
    registered.iter().map(|it| it.name).collect()
}

/// The identity of a registered module: the address of its archive, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId(usize, Place);

/// A module that has kernels of a source.
pub struct EmbeddedModule {
    /// The identity of the module.
    pub id: ModuleId,
    target: EmbeddedTarget,
}

impl EmbeddedModule {
    /// Returns the modules that a device may run among those with the kernels of a source, the
    /// best first.
    pub fn all(device: &str, source: &str) -> Vec<EmbeddedModule> {
        let registered = REGISTERED.read().unpoisoned();
        if registered.is_empty() {
            return Vec::new();
        }
        let Ok(device) = device.parse::<Target>() else { return Vec::new() };
        let key = SourceKey::of(source);
        let fitting = registered.iter().filter_map(|&target| {
            let code: Target = target.name.parse().ok()?;
            let fit = code.fit(&device)?;
            let id = ModuleId(target.archive().as_ptr() as usize, find(target.archives, key)?);
            Some((fit, EmbeddedModule { id, target }))
        });
        let mut fitting: Vec<_> = fitting.collect();
        fitting.sort_by_key(|(fit, _)| std::cmp::Reverse(*fit));
        fitting.into_iter().map(|(_, module)| module).collect()
    }

    /// Returns the target of the code.
    pub fn target(&self) -> &EmbeddedTarget {
        &self.target
    }

    /// Its code; `None` if it is damaged.
    pub fn code(&self) -> Option<Vec<u8>> {
        module(self.target.archives, self.id.1)
    }
}

impl fmt::Debug for EmbeddedModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmbeddedModule({:?} of {:?})", self.id.1, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::archive::{BLOCK, HEADER, KEY, NUMBER, counts};
    use super::packing::{FULL, LONG};
    use super::*;
    use crate::source::KernelSpec;
    use crate::source::catalogue::catalogue;

    /// Two specifications and another.
    fn specs() -> [KernelSpec; 3] {
        let groups = catalogue();
        [0, 1, 2].map(|group| groups[group].plans[0].spec().clone())
    }

    /// Code that never reaches a device.
    fn target(
        name: &'static str,
        compiler: &'static str,
        archive: &'static [u8],
    ) -> EmbeddedTarget {
        // SAFETY: the code is looked up, and never run.
        unsafe { EmbeddedTarget::new(name, compiler, vec![archive].leak()) }
    }

    fn packed() -> (&'static [u8], [KernelSpec; 3], Vec<u8>) {
        let [a, b, other] = specs();
        let code: Vec<u8> = (0..10_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let objects = [
            PackedObject::new(slice::from_ref(&other), b"small"),
            PackedObject::new(&[a.clone(), b.clone()], &code),
        ];
        (pack(&objects, &[]).leak(), [a, b, other], code)
    }

    #[test]
    fn what_is_packed_is_found_by_its_source() {
        let (archive, [a, b, other], code) = packed();
        let embedded = target("gfx90a", "a compiler", archive);
        assert_eq!((embedded.kernel_count(), embedded.bytes()), (3, archive.len()));
        assert!(embedded.bytes() < code.len() / 2);
        assert_eq!(embedded.code(&a.source()), Some(code.clone()));
        assert_eq!(embedded.code(&b.source()), Some(code));
        assert_eq!(embedded.code(&other.source()).as_deref(), Some(&b"small"[..]));
        // Another version's source has the same kernels' names.
        assert_eq!(embedded.code(&a.source().replace("    ", "\t")), None);
        let unknown = catalogue()[3].plans[0].spec().clone();
        assert_eq!(embedded.code(&unknown.source()), None);
    }

    #[test]
    fn shares_add_up_to_the_archive() {
        let [a, b, other] = specs();
        let code: Vec<u8> = (0..40_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let two = [a, b];
        let objects = [
            PackedObject::new(&two, &code[..120_000]),
            PackedObject::new(slice::from_ref(&other), &code[120_000..]),
        ];
        let archive = pack(&objects, &[]);
        let share = |specs: &[KernelSpec]| share(&[&archive], specs);
        let shares = [share(&two), share(slice::from_ref(&other))];
        let [blocks, ..] = counts(&archive);
        let missing = archive.len() - HEADER - BLOCK * blocks - shares.iter().sum::<usize>();
        // Each share is rounded down.
        assert!(missing < objects.len(), "{shares:?} of {}", archive.len());
        assert!(shares[0] > 2 * shares[1], "{shares:?}");
        // Two specifications share a module, and each has an entry.
        assert_eq!(share(&two[..1]), shares[0] - KEY - NUMBER);
        assert_eq!(share(&[catalogue()[3].plans[0].spec().clone()]), 0);
    }

    #[test]
    fn blocks_are_short_before_they_are_packed_too() {
        let [a, b, other] = specs();
        let text = vec![b'a'; LONG / 16];
        let object = |spec| PackedObject::new(slice::from_ref(spec), &text);
        let archive = pack(&[object(&a), object(&b), object(&other)], &[]);
        let block =
            |spec: &KernelSpec| find(&[&archive], SourceKey::of(&spec.source())).map(|it| it.block);
        assert_eq!([&a, &b, &other].map(block), [Some(0), Some(0), Some(1)]);
    }

    #[test]
    fn what_is_damaged_is_no_code() {
        let (whole, [a, ..], code) = packed();
        let key = SourceKey::of(&a.source());
        let place = find(&[whole], key).expect("it is there");
        for length in (0..whole.len()).step_by(7) {
            let cut = &whole[..length];
            assert_eq!(module(&[cut], place), None);
            find(&[cut], key);
        }
        // Of any changed byte, the module is whole or refused.
        let mut refused = 0;
        for at in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 0xff;
            let found = find(&[&damaged], key).map(|place| module(&[&damaged], place));
            match found.flatten() {
                Some(found) => assert_eq!(found, code, "{at}"),
                None => refused += 1,
            }
        }
        assert!(refused > whole.len() / 2, "{refused} of {}", whole.len());
        assert_eq!(target("sm_90", "", b"nothing of the kind").kernel_count(), 0);
        assert_eq!(target("sm_90", "", b"").kernel_count(), 0);
    }

    #[test]
    fn code_over_a_base_is_small_and_needs_that_base() {
        let [a, b, other] = specs();
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        // The second object does not fit into the first one's block.
        let codes =
            [3 * FULL / 4, FULL / 2].map(|size| (0..size).map(|_| random()).collect::<Vec<u8>>());
        let objects = |change: u8| {
            let mut codes = codes.clone();
            codes.iter_mut().for_each(|code| code[1000] ^= change);
            let objects = [
                PackedObject::new(&[a.clone(), b.clone()], &codes[0]),
                PackedObject::new(slice::from_ref(&other), &codes[1]),
            ];
            (objects, codes)
        };
        let base: &[u8] = pack(&objects(0).0, &[]).leak();
        assert_eq!(counts(base), [2, 2, 3, 3]);
        let (similar, codes) = objects(1);
        let another = pack(&objects(2).0, &[]);
        let archive: &[u8] = pack(&similar, &[base]).leak();
        let (last, last_codes) = objects(3);
        let over_both = pack(&last, &[archive, base]);
        for archive in [archive, &over_both] {
            assert!(archive.len() < base.len() / 50, "{} and {}", archive.len(), base.len());
        }
        for (spec, k) in [(&a, 0), (&b, 0), (&other, 1)] {
            let place = |archives: &[&[u8]]| find(archives, SourceKey::of(&spec.source()));
            let of_archive = place(&[archive, base]).expect("it is there");
            let of_both = place(&[&over_both, archive, base]).expect("it is there");
            assert_eq!(module(&[archive, base], of_archive).as_ref(), Some(&codes[k]));
            assert_eq!(
                module(&[&over_both, archive, base], of_both).as_ref(),
                Some(&last_codes[k])
            );
            for others in [vec![], vec![&another[..]], vec![base, archive], vec![archive]] {
                let archives = |first| [&[first], &others[..]].concat();
                assert_eq!(module(&archives(archive), of_archive), None);
                assert_eq!(module(&archives(&over_both), of_both), None);
            }
            assert_eq!(module(&[base, &another], of_archive), None);
        }
        // A base without some of the units.
        let part = pack(&similar[..1], &[]);
        let archive = pack(&similar, &[&part]);
        let place = find(&[&archive, &part], SourceKey::of(&other.source())).expect("it is there");
        assert_eq!(module(&[&archive, &part], place).as_ref(), Some(&codes[1]));
    }

    #[test]
    fn ptx_comes_back_with_other_numbers_of_registers() {
        let [a, ..] = specs();
        let [name] = &a.kernel_names()[..] else { panic!("one kernel") };
        let text = format!(
            ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry {name}(\n)\n{{\n\
             .reg .b32 %r<9>;\nmov.u32 %r7, %tid.x;\nret;\n}}\n\0"
        );
        let object = PackedObject::of_ptx(slice::from_ref(&a), text.as_bytes()).expect("PTX");
        let archive = pack(&[object], &[]).leak();
        let code = target("compute_75", "", archive).code(&a.source()).expect("it is there");
        assert_eq!(code, text.replace("%r7", "%r1").into_bytes());
    }

    #[test]
    fn devices_get_the_code_that_suits_them_best() {
        let [a, _, other] = specs();
        let object = |code: &'static [u8]| {
            pack(&[PackedObject::new(slice::from_ref(&a), code)], &[]).leak() as &[u8]
        };
        let (plain, exact, newer) = (object(b"plain"), object(b"exact"), object(b"newer"));
        let targets = [
            target("gfx90a", "", plain),
            target("gfx90a:xnack-", "", exact),
            target("sm_70", "", newer),
        ];
        register(&targets);
        register(&targets);
        let source = a.source();
        let code =
            |device: &str| EmbeddedModule::all(device, &source).first().and_then(|it| it.code());
        assert_eq!(code("gfx90a:sramecc+:xnack-").as_deref(), Some(&b"exact"[..]));
        assert_eq!(code("gfx90a:sramecc+:xnack+").as_deref(), Some(&b"plain"[..]));
        assert_eq!(code("sm_75").as_deref(), Some(&b"newer"[..]));
        assert_eq!(code("sm_60"), None);
        assert_eq!(code("the processor"), None);
        assert!(EmbeddedModule::all("sm_75", &other.source()).is_empty());
        let names = |device: &str| -> Vec<&str> {
            EmbeddedModule::all(device, &source).iter().map(|it| it.target().name()).collect()
        };
        assert_eq!(names("gfx90a:sramecc+:xnack-"), ["gfx90a:xnack-", "gfx90a"]);
        assert_eq!(registered().iter().filter(|name| **name == "sm_70").count(), 1);
    }
}
