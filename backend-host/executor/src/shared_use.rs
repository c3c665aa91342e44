//! Determines which static shared memory the functions of a unit use, directly and through other functions.
//!
//! A shared library no longer contains this information, because the linker has resolved its references. The
//! object file does, and there each function has its own section (`-ffunction-sections`). The bytes are
//! therefore added up from the object file, and passed to the library in symbols. A function that uses a
//! function table counts everything reachable through it. Without optimisation, clang's variables share a
//! section and are counted together.

use crate::error::{Error, Result};
use crate::shared_memory::is_shared;
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex,
    SymbolIndex, SymbolKind,
};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// The prefix of the symbol for a function's static shared memory; the name of the function follows. The size
/// of the symbol is the number of bytes.
pub(crate) const PREFIX: &str = "gpuarray_shared_of.";

/// The references of one section.
#[derive(Default)]
struct References {
    sections: HashSet<SectionIndex>,
    variables: HashSet<SymbolIndex>,
}

/// Returns the static shared memory in bytes of each function of an object file that uses some.
fn bytes_by_function(file: &object::File<'_>) -> Vec<(String, u64)> {
    let mut bytes = HashMap::new();
    for symbol in file.symbols().filter(|it| it.kind() == SymbolKind::Tls && it.size() > 0) {
        if !symbol.is_undefined() && symbol.name().is_ok_and(is_shared) {
            bytes.insert(symbol.index(), symbol.size());
        }
    }
    if bytes.is_empty() {
        return Vec::new();
    }
    let mut references: HashMap<SectionIndex, References> = HashMap::new();
    for section in file.sections() {
        let own = references.entry(section.index()).or_default();
        for (_, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            if bytes.contains_key(&index) {
                own.variables.insert(index);
            } else if let Ok(symbol) = file.symbol_by_index(index) {
                own.sections.extend(symbol.section_index());
            }
        }
    }
    let mut functions = Vec::new();
    for symbol in file.symbols().filter(|it| it.kind() == SymbolKind::Text && it.is_definition()) {
        let (Ok(name), Some(section)) = (symbol.name(), symbol.section_index()) else { continue };
        let used: u64 = reached(&references, section).iter().map(|it| bytes[it]).sum();
        if used > 0 {
            functions.push((name.to_owned(), used));
        }
    }
    functions
}

/// Returns the variables that are reachable from a section.
fn reached(
    references: &HashMap<SectionIndex, References>,
    from: SectionIndex,
) -> HashSet<SymbolIndex> {
    let (mut variables, mut seen, mut left) = (HashSet::new(), HashSet::from([from]), vec![from]);
    while let Some(section) = left.pop() {
        let Some(own) = references.get(&section) else { continue };
        variables.extend(&own.variables);
        left.extend(own.sections.iter().filter(|it| seen.insert(**it)));
    }
    variables
}

/// Returns assembler text that defines the symbols for an object file.
///
/// # Errors
/// `NotAUnit` for other bytes.
pub(crate) fn symbols(bytes: &[u8]) -> Result<String> {
    let file = object::File::parse(bytes)
        .map_err(|error| Error::NotAUnit(format!("no compiled unit: {error}")))?;
    let mut text = String::new();
    for (name, used) in bytes_by_function(&file) {
        let name = format!("{PREFIX}{name}");
        let _ = write!(
            text,
            ".set \"{name}\", 0\n.type \"{name}\", %object\n.size \"{name}\", {used}\n"
        );
    }
    Ok(text)
}
