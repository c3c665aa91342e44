//! The symbol table of an object file or a shared library.

use crate::error::{Error, Result};
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, SectionIndex, SectionKind, SymbolFlags,
    SymbolKind, elf,
};
use std::ops::Range;

/// A defined symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    /// The address relative to the start of the library, or the offset in its thread-local memory.
    pub(crate) value: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: SymbolKind,
    /// True if the program may write to it after the library is loaded.
    pub(crate) is_writable: bool,
}

/// All symbols, including `static` functions and variables.
#[derive(Debug)]
pub(crate) struct Symbols {
    pub(crate) defined: Vec<Symbol>,
    /// The code, relative to the start of the library.
    pub(crate) code: Range<u64>,
    /// The data that is read-only after the library is loaded: constants, literals and tables.
    pub(crate) read_only: Vec<Range<u64>>,
    undefined: Vec<(String, SymbolKind)>,
    /// A function whose address is computed by a resolver; the system's loader calls the resolver.
    pub(crate) resolved: Option<String>,
}

/// Returns true for sections that stay writable after loading.
fn is_writable(file: &object::File<'_>, section: Option<SectionIndex>) -> bool {
    let section = section.and_then(|index| file.section_by_index(index).ok());
    section.is_some_and(|section| {
        let is_written = |name: &str| !name.starts_with(".data.rel.ro");
        matches!(section.kind(), SectionKind::Data | SectionKind::UninitializedData)
            && section.name().is_ok_and(is_written)
    })
}

impl Symbols {
    /// Reads the symbols of an ELF file.
    ///
    /// # Errors
    /// `NotAUnit` for other bytes.
    pub(crate) fn of(bytes: &[u8]) -> Result<Symbols> {
        let file = object::File::parse(bytes)
            .map_err(|error| Error::NotAUnit(format!("no compiled unit: {error}")))?;
        let text = file.section_by_name(".text");
        let code = text.map_or(0..0, |it| it.address()..it.address().saturating_add(it.size()));
        let is_read_only = |it: &object::Section<'_, '_>| {
            let is_kept =
                matches!(it.kind(), SectionKind::ReadOnlyData | SectionKind::ReadOnlyString);
            is_kept || it.name().is_ok_and(|name| name.starts_with(".data.rel.ro"))
        };
        let sections = file.sections().filter(is_read_only);
        let mut symbols = Symbols {
            defined: Vec::new(),
            code,
            read_only: sections
                .map(|it| it.address()..it.address().saturating_add(it.size()))
                .collect(),
            undefined: Vec::new(),
            resolved: None,
        };
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            if name.is_empty() {
                continue;
            }
            let info = match symbol.flags() {
                SymbolFlags::Elf { st_info, .. } => st_info,
                _ => 0,
            };
            if info & 0xf == elf::STT_GNU_IFUNC && !symbol.is_undefined() {
                symbols.resolved = Some(name.to_owned());
            }
            if symbol.is_undefined() {
                symbols.undefined.push((name.to_owned(), symbol.kind()));
            } else if matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data | SymbolKind::Tls)
            {
                symbols.defined.push(Symbol {
                    name: name.to_owned(),
                    value: symbol.address(),
                    bytes: symbol.size(),
                    kind: symbol.kind(),
                    is_writable: is_writable(&file, symbol.section_index()),
                });
            }
        }
        Ok(symbols)
    }

    /// Returns true for a function or variable that is declared but not defined, in any version.
    pub(crate) fn is_undefined(&self, name: &str) -> bool {
        self.undefined.iter().any(|it| it.0.split('@').next() == Some(name))
    }

    /// Returns the names of thread-local variables that are declared but not defined.
    pub(crate) fn undefined_thread_local(&self) -> impl Iterator<Item = &str> {
        let names = self.undefined.iter().filter(|(_, kind)| *kind == SymbolKind::Tls);
        names.map(|(name, _)| name.as_str())
    }

    /// Returns the linker options for libraries. Linking a library takes longer than most units.
    pub(crate) fn libraries(&self) -> &'static [&'static str] {
        let of_cpp =
            |name: &str| ["_Z", "__cxa_", "__gxx_", "__dso_"].iter().any(|it| name.starts_with(it));
        // Every process contains the C library and the loader, whose symbols are resolved when needed.
        let of_process = |name: &str| {
            let known = ["_GLOBAL_OFFSET_TABLE_", "__tls_get_addr", "memcpy", "memmove", "memset"];
            known.contains(&name)
        };
        let mut names = self.undefined.iter().filter(|it| it.1 != SymbolKind::Tls).map(|it| &*it.0);
        if names.clone().all(of_process) {
            &["-nostdlib"]
        } else if names.any(of_cpp) {
            &["-Wl,-z,defs"]
        } else {
            &["-Wl,-z,defs", "-nodefaultlibs", "-lm", "-lc", "-lgcc"]
        }
    }

    /// Returns true if a compiler support function may be called, such as `__floattisf` for 128-bit numbers.
    /// Their names end with the kind of number and possibly the number of arguments.
    pub(crate) fn may_call_compiler(&self) -> bool {
        const KINDS: [&str; 12] =
            ["si", "di", "ti", "hf", "bf", "sf", "df", "xf", "tf", "sc", "dc", "xc"];
        self.undefined.iter().filter_map(|it| it.0.strip_prefix("__")).any(|name| {
            let kind = name.trim_end_matches(['2', '3', '4']);
            KINDS.iter().any(|it| kind.ends_with(it))
        })
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Symbol> {
        self.defined.iter().find(|symbol| symbol.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_reach_beyond_all_addresses_are_read() {
        let mut image = vec![0; 64 + 3 * 64];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01\x01");
        // A shared library for x86-64, whose sections follow the header: an empty one, the names, and one of
        // the program.
        put(0x10, &[3, 0, 62, 0, 1]);
        put(0x28, &[64]);
        put(0x34, &[64, 0, 56, 0, 0, 0, 64, 0, 3, 0, 1]);
        let (names, section) = (64 + 64, 64 + 2 * 64);
        put(names + 4, &[3]);
        put(section + 4, &[1]);
        put(section + 0x10, &[0xff; 8]);
        put(section + 0x18, &[0xff; 8]);
        put(section + 0x20, &[16]);
        assert!(Symbols::of(&image).expect("an ELF file").defined.is_empty());
    }
}
