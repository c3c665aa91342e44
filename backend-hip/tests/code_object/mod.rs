//! Reads an AMDGPU code object: its machine, target, kernels and their arguments. The metadata note is a MessagePack
//! value, as LLVM's "User Guide for AMDGPU Backend" describes it.

#![allow(dead_code, reason = "each test that includes this module uses a part of it")]

use codegen::source::Plan;
use object::elf::{EM_AMDGPU, FileHeader64};
use object::read::elf::{ElfFile, FileHeader};
use object::{Endianness, Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};

/// Parts of the ELF header's flags: `EF_AMDGPU_MACH` and some of its values, and features of
/// code objects since version 4.
pub(crate) const MACHINE: u32 = 0xff;
pub(crate) const GFX90A: u32 = 0x3f;
pub(crate) const GFX1030: u32 = 0x36;
pub(crate) const GFX942: u32 = 0x4c;
pub(crate) const GFX1100: u32 = 0x41;
pub(crate) const GFX11_GENERIC: u32 = 0x54;
pub(crate) const GENERIC_VERSION_1: u32 = 1 << 24;
pub(crate) const XNACK_ANY: u32 = 0x100;
pub(crate) const XNACK_OFF: u32 = 0x200;
pub(crate) const SRAMECC_ANY: u32 = 0x400;
pub(crate) const SRAMECC_ON: u32 = 0xc00;

/// The type of the metadata note.
const NT_AMDGPU_METADATA: u32 = 32;

#[derive(Debug)]
pub(crate) struct CodeObject {
    /// The machine and the features: `EF_AMDGPU_*`.
    pub(crate) flags: u32,
    /// The target, as in `amdgcn-amd-amdhsa--gfx90a:xnack-`.
    pub(crate) target: String,
    /// The kernels, by name.
    pub(crate) kernels: BTreeMap<String, Kernel>,
    /// The symbols that the object defines.
    pub(crate) symbols: BTreeSet<String>,
}

#[derive(Debug)]
pub(crate) struct Kernel {
    /// The symbol of the kernel's descriptor.
    pub(crate) symbol: String,
    /// The arguments, except those that the runtime adds.
    pub(crate) arguments: Vec<Argument>,
    pub(crate) argument_bytes: u64,
    pub(crate) wavefront: u64,
    pub(crate) most_threads: u64,
    /// Bytes of memory per lane, for values that are not in registers.
    pub(crate) scratch: u64,
    /// The numbers of spilled registers: scalar registers, into lanes of vector registers, and vector registers,
    /// into memory.
    pub(crate) spills: [u64; 2],
}

#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// The kind, such as `global_buffer` or `by_value`.
    pub(crate) kind: String,
}

/// Returns the number of scalar registers that a kernel may spill. Long sequences of comparisons hold masks of
/// lanes, each a pair of registers; spilling one costs an instruction and no memory.
fn scalar_spills(name: &str) -> u64 {
    // Divisions, powers and functions of complex numbers.
    if name.contains("_c128") || name.contains("_c64") {
        return 256;
    }
    const MOST: [(&str, u64); 9] = [
        ("_reduce_", 512),
        ("_scan_", 128),
        ("_nonzero_", 16),
        ("_tan_", 4),
        ("_tanh_", 4),
        ("_erf_", 4),
        ("_gamma_", 32),
        ("_product_bool_", 640),
        ("_random_", 32),
    ];
    MOST.iter().find(|(part, _)| name.contains(part)).map_or(0, |(_, most)| *most)
}

/// Returns the number of vector registers that a kernel may spill to memory. Large tiles of matrix products on
/// wavefronts of 32 spill some, because each thread holds 64 sums and their operands. Kernels whose threads read
/// 256-bit packs of two operands spill a few. With LLVM 21 and 22 other kernels also spill: `complex128` merges (a
/// thread's four elements), deviations of strided operands, scans of `complex64` extremes and positions of
/// `complex128` extremes (one element each). For gfx10-1, complex minima and maxima spill an element of each
/// operand.
fn vector_spills(name: &str) -> u64 {
    match name {
        _ if name.contains("_product_") => 80,
        _ if name.contains("_c128_merge") => 10,
        _ if name.contains("_squared_deviations_") => 7,
        _ if name.contains("_scan_m") && name.contains("_c64_") => 3,
        _ if name.contains("_positions_c128_") => 6,
        _ if name.contains("_minimum_c") || name.contains("_maximum_c") => 5,
        _ if name.contains("_products_") && name.contains("_packed256_") => 8,
        _ => 0,
    }
}

impl CodeObject {
    pub(crate) fn parse(bytes: &[u8]) -> CodeObject {
        let file = ElfFile::<FileHeader64<Endianness>>::parse(bytes).expect("an ELF file");
        let (header, endian) = (file.elf_header(), file.endian());
        assert_eq!(header.e_machine(endian), EM_AMDGPU);
        let segments = header.program_headers(endian, bytes).expect("segments");
        let mut metadata = None;
        for segment in segments {
            use object::read::elf::ProgramHeader;
            let Ok(Some(mut notes)) = segment.notes(endian, bytes) else { continue };
            while let Some(note) = notes.next().expect("a note") {
                if note.name() == b"AMDGPU" && note.n_type(endian) == NT_AMDGPU_METADATA {
                    let mut description = note.desc();
                    metadata = Some(Value::parse(&mut description));
                }
            }
        }
        let metadata = metadata.expect("a note with metadata");
        let kernels = metadata.get("amdhsa.kernels").list().iter().map(Kernel::of);
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let defined = symbols.filter(|it| it.is_definition());
        CodeObject {
            flags: header.e_flags(endian),
            target: metadata.get("amdhsa.target").text().to_owned(),
            kernels: kernels.collect(),
            symbols: defined.map(|it| it.name().expect("a name").to_owned()).collect(),
        }
    }

    /// Returns a line for each kernel that spills more than it may.
    pub(crate) fn registers_that_do_not_suffice(&self) -> Vec<String> {
        let lines = self.kernels.iter().filter_map(|(name, kernel)| {
            let [scalar, vector] = kernel.spills;
            let allowed = vector_spills(name);
            let in_memory = vector > allowed || kernel.scratch > 8 * allowed;
            (in_memory || scalar > scalar_spills(name)).then(|| {
                format!("{name}: {scalar} scalar, {vector} vector, {} bytes", kernel.scratch)
            })
        });
        lines.collect()
    }

    /// Checks that the code has a plan's kernels, and that they take the arguments that the plan packs. Returns the
    /// number of kernels.
    pub(crate) fn check_kernels(&self, plan: &Plan, wavefront: u64) -> usize {
        let names = plan.spec().kernel_names();
        for name in &names {
            let kernel = self.kernels.get(name).unwrap_or_else(|| panic!("no kernel {name}"));
            assert_eq!(kernel.symbol, format!("{name}.kd"));
            assert!(self.symbols.contains(name) && self.symbols.contains(&kernel.symbol));
            assert_eq!(kernel.wavefront, wavefront, "{name}");
        }
        for launch in plan.launches() {
            let name = &names[launch.kernel];
            let kernel = &self.kernels[name];
            let given = plan.arguments(launch);
            assert_eq!(given.len(), kernel.arguments.len(), "{name}: {kernel:?}");
            let threads: u32 = launch.config.block.iter().product();
            assert!(u64::from(threads) <= kernel.most_threads, "{name}: {kernel:?}");
            let mut end = 0;
            for (i, argument) in kernel.arguments.iter().enumerate() {
                assert!(argument.offset >= end, "{name}: {kernel:?}");
                end = argument.offset + argument.size;
                assert!(["global_buffer", "by_value"].contains(&argument.kind.as_str()), "{name}");
                // The plan packs each argument into words, directly after the previous argument.
                if let Some(next) = given.get(i + 1) {
                    let packed = (*next as usize - given[i] as usize) as u64;
                    assert_eq!(argument.size.next_multiple_of(8), packed, "{name}: {kernel:?}");
                }
            }
            assert!(end <= kernel.argument_bytes, "{name}: {kernel:?}");
        }
        names.len()
    }
}

impl Kernel {
    fn of(value: &Value) -> (String, Kernel) {
        let arguments =
            value.find(".args").map_or(&[][..], Value::list).iter().map(|it| Argument {
                offset: it.get(".offset").number(),
                size: it.get(".size").number(),
                kind: it.get(".value_kind").text().to_owned(),
            });
        let kernel = Kernel {
            symbol: value.get(".symbol").text().to_owned(),
            arguments: arguments.filter(|it| !it.kind.starts_with("hidden_")).collect(),
            argument_bytes: value.get(".kernarg_segment_size").number(),
            wavefront: value.get(".wavefront_size").number(),
            most_threads: value.get(".max_flat_workgroup_size").number(),
            scratch: value.get(".private_segment_fixed_size").number(),
            spills: [".sgpr_spill_count", ".vgpr_spill_count"]
                .map(|name| value.find(name).map_or(0, Value::number)),
        };
        (value.get(".name").text().to_owned(), kernel)
    }
}

/// A MessagePack value, of the kinds that occur in metadata.
#[derive(Debug)]
enum Value {
    Number(u64),
    Boolean,
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

impl Value {
    fn parse(rest: &mut &[u8]) -> Value {
        fn number(rest: &mut &[u8], bytes: usize) -> usize {
            let (number, behind) = rest.split_at(bytes);
            *rest = behind;
            number.iter().fold(0, |all, byte| all << 8 | usize::from(*byte))
        }
        let kind = number(rest, 1);
        match kind {
            0x00..=0x7f => Value::Number(kind as u64),
            0x80..=0x8f => Value::map(rest, kind & 15),
            0x90..=0x9f => Value::list_of(rest, kind & 15),
            0xa0..=0xbf => Value::text_of(rest, kind & 31),
            0xc2 | 0xc3 => Value::Boolean,
            0xcc..=0xcf => Value::Number(number(rest, 1 << (kind - 0xcc)) as u64),
            0xd9..=0xdb => {
                let length = number(rest, 1 << (kind - 0xd9));
                Value::text_of(rest, length)
            }
            0xdc | 0xdd => {
                let length = number(rest, 2 << (kind - 0xdc));
                Value::list_of(rest, length)
            }
            0xde | 0xdf => {
                let length = number(rest, 2 << (kind - 0xde));
                Value::map(rest, length)
            }
            other => panic!("a value of kind {other:#x}"),
        }
    }

    fn text_of(rest: &mut &[u8], length: usize) -> Value {
        let (text, behind) = rest.split_at(length);
        *rest = behind;
        Value::Text(String::from_utf8(text.to_vec()).expect("text"))
    }

    fn list_of(rest: &mut &[u8], length: usize) -> Value {
        Value::List((0..length).map(|_| Value::parse(rest)).collect())
    }

    fn map(rest: &mut &[u8], length: usize) -> Value {
        let pair = |_| {
            let key = Value::parse(rest).text().to_owned();
            (key, Value::parse(rest))
        };
        Value::Map((0..length).map(pair).collect())
    }

    fn find(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(pairs) => pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            other => panic!("{name} of {other:?}"),
        }
    }

    fn get(&self, name: &str) -> &Value {
        self.find(name).unwrap_or_else(|| panic!("{name} of {self:?}"))
    }

    fn number(&self) -> u64 {
        if let Value::Number(number) = self { *number } else { panic!("no number: {self:?}") }
    }

    fn text(&self) -> &str {
        if let Value::Text(text) = self { text } else { panic!("no text: {self:?}") }
    }

    fn list(&self) -> &[Value] {
        if let Value::List(list) = self { list } else { panic!("no list: {self:?}") }
    }
}
