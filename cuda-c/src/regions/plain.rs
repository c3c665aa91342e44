//! Rewrites kernels with simpler constructs, so that more of them can be read with certainty.
//!
//! - A reference becomes a pointer: `float &v = s[t]; v += 1;` becomes `float *v = &s[t]; v[0] += 1;`.
//! - `auto` becomes the deduced type: `auto v = 2 * n;` becomes `int v = 2 * n;`.
//! - An expression statement with commas becomes several statements: `a = 1, b = 2;` becomes `{ a = 1; b = 2;
//!   }`.
//!
//! The program computes the same as before.

use super::lexemes::{Lexemes, NONE};
use super::meetings::Walk;
use super::statements::{Body, Local, Node, What};
use super::types::{Type, Types};
use crate::tokens::Edit;

/// Returns the edits that simplify a kernel. If `by_name` is false, types of the program are not used, because a name may
/// stand for a reference; with `commas`, statements are split at commas.
pub(super) fn edits(
    lexemes: &Lexemes<'_, '_>,
    body: &Body,
    by_name: bool,
    commas: bool,
) -> Vec<Edit> {
    let meets = |_: &str| false;
    let walk = Walk::new(lexemes, body, &meets, false);
    let mut plainer = Plainer { lexemes, body, types: Types { walk: &walk }, edits: Vec::new() };
    plainer.names(by_name);
    if commas {
        plainer.commas(&body.nodes);
    }
    plainer.edits
}

struct Plainer<'w, 't, 'a> {
    lexemes: &'w Lexemes<'t, 'a>,
    body: &'w Body,
    types: Types<'w, 't, 'a>,
    edits: Vec<Edit>,
}

impl Plainer<'_, '_, '_> {
    /// Replaces references and `auto`.
    fn names(&mut self, by_name: bool) {
        let lexemes = self.lexemes;
        let known = |it: &Type| by_name || !matches!(it, Type::Other(_));
        for (id, local) in self.body.locals.iter().enumerate() {
            if local.is_parameter
                || local.is_shared
                || !local.is_assigned
                || local.init.start == NONE
            {
                continue;
            }
            let same = |it: &&Local| it.specifiers == local.specifiers;
            let group: Vec<&Local> = self.body.locals.iter().filter(same).collect();
            let auto = local.specifiers.clone().find(|&it| lexemes.at(it) == "auto");
            if lexemes.at(local.declarator.start) == "&" {
                if group.len() == 1 && local.declarator.len() == 2 {
                    self.reference(id, local, auto, &known);
                }
                continue;
            }
            let (Some(auto), true) = (auto, group[0].at == local.at) else { continue };
            let kinds: Option<Vec<Type>> =
                group.iter().map(|it| self.types.of(it.init.clone()).filter(known)).collect();
            let Some([first, others @ ..]) = kinds.as_deref() else { continue };
            if !others.iter().all(|it| it == first) || group.iter().any(|it| !it.is_assigned) {
                continue;
            }
            let consts = local.specifiers.clone().filter(|&it| lexemes.at(it) == "const");
            match (first, local.declarator.len()) {
                (Type::Pointer(kind), 1 | 2) if group.len() == 1 => {
                    let base = kind.trim_end_matches(" *");
                    let is_pointer = local.declarator.len() == 2;
                    if is_pointer && lexemes.at(local.declarator.start) != "*" {
                        continue;
                    }
                    // `const` belongs to the pointee if `auto *` is declared, else to the pointer, which then
                    // loses it.
                    let mut is_const = base.starts_with("const ");
                    for word in consts {
                        is_const |= is_pointer;
                        self.edits.push(lexemes.replacement(word..word + 1, ""));
                    }
                    let base = base.trim_start_matches("const ");
                    let (sign, star) =
                        (if is_const { "const " } else { "" }, if is_pointer { "" } else { " *" });
                    let text = format!("{sign}{base}{star}");
                    self.edits.push(lexemes.replacement(auto..auto + 1, &text));
                }
                (Type::Number(_) | Type::Other(_), 1) => {
                    self.edits.push(lexemes.replacement(auto..auto + 1, first.text()));
                }
                _ => {}
            }
        }
    }

    /// Replaces a reference by a pointer: in its declaration, in its initialiser, and at each of its uses.
    fn reference(
        &mut self,
        id: usize,
        local: &Local,
        auto: Option<usize>,
        known: &dyn Fn(&Type) -> bool,
    ) {
        let lexemes = self.lexemes;
        let init = local.init.clone();
        let words = || local.specifiers.clone().map(|it| lexemes.at(it));
        let is_const = words().any(|it| it == "const");
        let kind = self.types.of(init.clone()).filter(known);
        let is_element = self.types.walk.element_kind(&init).is_some()
            || init.len() == 1 && self.types.walk.is_local(init.start);
        let star = local.declarator.start..local.declarator.start + 1;
        let is_same = auto.is_some() || (kind.is_some() && kind == Type::of_words(words()));
        // Any other constant reference may extend the life of a temporary, which does not have an address that a
        // pointer could hold.
        let is_of_place = !is_const || (is_element && is_same);
        if ((is_const || auto.is_some()) && kind.is_none()) || !is_of_place {
            return;
        }
        if let (Some(auto), Some(kind)) = (auto, &kind) {
            let owner = self.types.walk.local_at(init.start);
            let of_constants = owner.is_some_and(|it| {
                it.specifiers.clone().any(|it| lexemes.at(it) == "const") && !is_const
            });
            let sign = if of_constants { "const " } else { "" };
            self.edits.push(lexemes.replacement(auto..auto + 1, &format!("{sign}{}", kind.text())));
        }
        self.edits.push(lexemes.replacement(star, "*"));
        let [open, close] =
            if is_element && lexemes.is_word(init.start) { ["&", ""] } else { ["&(", ")"] };
        self.edits.push(lexemes.insertion(init.start, open));
        self.edits.push(lexemes.addition(init.end, close));
        for used in self.body.uses.iter().filter(|it| it.local == id) {
            self.edits.push(lexemes.addition(used.at + 1, "[0]"));
        }
    }

    /// Splits expression statements at their commas.
    fn commas(&mut self, nodes: &[Node]) {
        nodes.iter().for_each(|it| self.comma(it));
    }

    fn comma(&mut self, node: &Node) {
        let lexemes = self.lexemes;
        match &node.what {
            What::Expression => {
                let range = node.range.start..node.range.end - 1;
                let parts = lexemes.parts(range.clone());
                let mut commas = parts.iter().skip(1).map(|it| it.start - 1).peekable();
                let may_be_type = lexemes.find(range.start, range.end, &["<", ">"]).is_some();
                if commas.peek().is_none() || may_be_type {
                    return;
                }
                self.edits.push(lexemes.insertion(node.range.start, "{ "));
                self.edits.extend(commas.map(|it| lexemes.replacement(it..it + 1, ";")));
                self.edits.push(lexemes.addition(node.range.end, " }"));
            }
            What::Block(nodes) => self.commas(nodes),
            What::If { then, other, .. } => {
                self.comma(then);
                other.iter().for_each(|it| self.comma(it));
            }
            What::Loop(it) => self.comma(&it.body),
            What::Switch(body) => self.comma(body),
            _ => {}
        }
    }
}
