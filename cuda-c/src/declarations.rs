//! Reads the parts of CUDA C that C++ cannot express: kernels and device variables.
//!
//! The qualifiers of CUDA are macros for reserved words (`gpuarray_abi.h`). The front end finds these words
//! in the preprocessed text, removes them, and appends declarations that take their place.

mod constants;
mod reader;
mod refused;

use crate::ptx;
use crate::regions::{self, Forms, Program};
use crate::tokens::{Tokens, edited};
use crate::tree::Items;
use crate::volatile_writes::{self, VolatileLines};
use crate::{known_names, qualifiers, shared_pointers, throws, unnamed_classes};
pub use constants::{OF_FUNCTION as CONSTANT_OF_FUNCTION, PREFIX as CONSTANT_PREFIX};
use reader::{Declarations, Kernel};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// A preprocessed text in a form that a C++ compiler accepts.
#[derive(Debug)]
pub struct Unit {
    /// The text.
    pub text: String,
    /// True if the text contains loop variants (kernels as loops over threads), which compilers may refuse.
    pub has_variants: bool,
    /// True if statements of kernels were split. The compiler may refuse the result even if it accepts the
    /// original statements.
    pub is_parted: bool,
    /// True if the text asks the compiler which expressions are volatile.
    pub asks: bool,
}

/// The parts of a unit that are optional, because compilers may refuse them.
#[derive(Debug, Default)]
pub struct Choices {
    /// The names of kernels that get no loop variant; `None` if no kernel gets one.
    pub without: Option<HashSet<String>>,
    /// True to insert barriers that the program omits because a GPU runs threads together.
    pub meets: bool,
    /// The lines with volatile memory that the compiler has found.
    pub volatile: VolatileLines,
}

impl Choices {
    /// Loop variants of all kernels, and meetings.
    pub fn all() -> Choices {
        Choices { without: Some(HashSet::new()), meets: true, ..Choices::default() }
    }
}

/// Translates a preprocessed text for a C++ compiler: removes CUDA's qualifiers, and appends an entry for
/// each kernel.
///
/// - `names`: expressions that name kernels and variables; their entries follow those for the text's own
///   kernels.
/// - `is_hip`: true for a HIP program.
///
/// # Errors
/// A message with file and line for a text that cannot be a unit.
pub fn unit(
    preprocessed: &str,
    names: &[&str],
    choices: &Choices,
    is_hip: bool,
) -> Result<Unit, String> {
    let tokens = Tokens::of(preprocessed);
    if let Some((renamed, own)) = known_names::renamed(&tokens) {
        let names: Vec<_> = names.iter().map(|name| known_names::expression(name, &own)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return unit(&renamed, &names, choices, is_hip);
    }
    refused::check(&tokens)?;
    if let Some(placed) = qualifiers::placed(&tokens) {
        return unit_of(&Tokens::of(&placed), names, choices, is_hip);
    }
    unit_of(&tokens, names, choices, is_hip)
}

/// Like [`unit()`], for a text whose qualifiers are in places that C++ accepts.
///
/// If kernels are simplified, or their statements split, the function calls itself with the changed text. The
/// loop variants are written once nothing changes any more.
fn unit_of(
    tokens: &Tokens<'_>,
    names: &[&str],
    choices: &Choices,
    is_hip: bool,
) -> Result<Unit, String> {
    let without = choices.without.as_ref();
    let statements = ptx::edits(tokens, is_hip)?;
    let items = Items::of(tokens);
    let all = &items.all[..];
    let Declarations { kernels, template_bounds, constants, uses_alloca, edits } =
        reader::read(tokens, &items);
    refused::check_kernels(tokens, all)?;
    // A kernel gets no loop variant if its lanes write in step, or rely on a pointer that only one thread
    // sets.
    let volatile_writes::Edits { mut meetings, questions } =
        volatile_writes::edits(tokens, &choices.volatile);
    let asks = !questions.is_empty();
    meetings.extend(shared_pointers::edits(tokens));
    let described = constants::of_functions(tokens);
    let is_plain = meetings.is_empty();
    let is_parted = tokens.text.contains(regions::PARTED);
    let reads_in_step = choices.meets && is_plain && !uses_alloca && !is_parted;
    let program = (choices.meets && !uses_alloca).then(|| Program::of(tokens, all));
    let read = program.as_ref().filter(|_| reads_in_step);
    let changed = read.and_then(|program| {
        regions::plain(tokens, all, program)
            .or_else(|| regions::in_step(tokens, all, program, without))
    });
    if let Some(text) = changed {
        // The compiler may refuse the rewritten text.
        let unit = unit_of(&Tokens::of(&text), names, choices, is_hip)?;
        return Ok(Unit { is_parted: true, ..unit });
    }
    let mut forms = program.map_or_else(Forms::default, |program| {
        Forms::of(tokens, all, &program, without.filter(|_| is_plain))
    });
    let mut edits: Vec<(usize, usize, Cow<'_, str>)> =
        edits.into_iter().map(|(start, end, text)| (start, end, text.into())).collect();
    // These come before the edits of a statement that follows without a space.
    for (token, form) in std::mem::take(&mut forms.texts) {
        let behind = tokens.all[token].end;
        edits.push((behind, behind, form.into()));
    }
    let texts = questions
        .into_iter()
        .chain(meetings)
        .chain(described)
        .chain(unnamed_classes::edits(tokens))
        .chain(throws::edits(tokens));
    edits.extend(texts.map(|(start, end, text)| (start, end, text.into())));
    let launches = refused::launches_of_host(tokens).into_iter();
    edits.extend(launches.map(|(start, end)| (start, end, "".into())));
    // Edits inside an `asm` statement are dropped, because the statement has its own replacement.
    edits.retain(|edit| {
        let before = statements.partition_point(|it| it.0 <= edit.0);
        before.checked_sub(1).is_none_or(|it| statements[it].1 <= edit.0)
    });
    edits.extend(statements.into_iter().map(|(start, end, text)| (start, end, text.into())));
    let has_variants = !forms.is_empty();
    // Text inserted between two tokens precedes the replacement of the second token.
    let mut text = edited(tokens.text, edits);
    let mut counts: HashMap<(&[String], &str), usize> = HashMap::new();
    for kernel in &kernels {
        *counts.entry((&kernel.namespaces, &kernel.name)).or_default() += 1;
    }
    for (number, kernel) in kernels.iter().enumerate() {
        let is_overloaded = counts[&(&kernel.namespaces[..], kernel.name.as_str())] > 1;
        // Other functions may have the same name, such as `min`. The types in the parameters of a qualified
        // name may not be visible here.
        let needs_type = is_overloaded || kernel.is_instance || !kernel.name.contains("::");
        append(&mut text, number, kernel, needs_type, &forms);
    }
    for (number, name) in names.iter().enumerate() {
        let template = name.split('<').next().unwrap_or(name).trim();
        let template = template.rsplit("::").next().unwrap_or(template);
        let bounds = template_bounds.get(template).map_or("", String::as_str);
        let number = kernels.len() + number;
        let address = name.trim().trim_start_matches('&');
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "\n# 1 \"name expression {}\"\n{}",
            escaped(&known_names::original(name)),
            entry(number)
        );
        let form = forms.name_of(address).map_or(String::new(), |form| format!(", (&{form})"));
        let _ = writeln!(text, "::gpuarray_abi::entry<(&{address}){form}>({{{bounds}}});");
    }
    constants::append(&mut text, &constants);
    Ok(Unit { text, has_variants, is_parted, asks })
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ")
}

/// Returns the declaration of an entry up to its initialiser.
fn entry(number: usize) -> String {
    format!(
        "static const ::gpuarray_abi::Entry gpuarray_entry_{number} \
         __asm__(\"gpuarray_entry_{number}\") __attribute__((used)) = "
    )
}

fn append(text: &mut String, number: usize, kernel: &Kernel, needs_type: bool, forms: &Forms) {
    let Kernel { namespaces, name, parameters, bounds, .. } = kernel;
    let _ = writeln!(text, "\n# 1 \"kernel {}\"", escaped(&known_names::original(name)));
    for namespace in namespaces {
        let _ = write!(text, "{namespace} {{ ");
    }
    let _ = write!(text, "{}::gpuarray_abi::entry<(", entry(number));
    let _ = match needs_type {
        true => write!(text, "static_cast<void (*)({parameters})>(&{name})"),
        false => write!(text, "&{name}"),
    };
    if let Some(form) = forms.name_of(name) {
        let comma = if matches!(parameters.as_str(), "" | "void") { "" } else { ", " };
        let parameters = if comma.is_empty() { "" } else { parameters };
        let _ = match needs_type {
            true => write!(
                text,
                "), (static_cast<bool (*)(::dim3, ::dim3, ::uint3{comma}{parameters})>(&{form})"
            ),
            false => write!(text, "), (&{form}"),
        };
    }
    let _ = write!(text, ")>({{{bounds}}}");
    if kernel.is_extern_c {
        let plain = name.rsplit("::").next().unwrap_or(name).trim();
        let _ = write!(text, ", \"{}\"", escaped(&known_names::original(plain)));
    }
    let _ = writeln!(text, ");{}", " }".repeat(namespaces.len()));
}

#[cfg(test)]
mod tests;
