//! Splits PTX of many kernels into one module for each specification, because a driver compiles the
//! whole module before the first of its kernels runs.

pub(super) mod relative;

/// The oldest version of PTX that NVRTC's output for builtin kernels is valid in (CUDA 11.0): a
/// driver refuses text of a version later than its own, whatever the text has in it.
const VERSION: (u32, u32) = (7, 0);

/// PTX in the parts that modules are made of.
#[derive(Debug)]
pub(super) struct PtxUnit<'a> {
    /// Version, target, size of addresses.
    head: String,
    items: Vec<Item<'a>>,
}

/// A kernel, a function or a variable.
#[derive(Debug)]
struct Item<'a> {
    name: &'a str,
    is_kernel: bool,
    text: &'a str,
}

impl<'a> PtxUnit<'a> {
    /// Takes NVRTC's PTX apart; `None` for any other text.
    pub(super) fn parse(text: &'a str) -> Option<PtxUnit<'a>> {
        let mut head = String::new();
        let mut items = Vec::new();
        let mut rest = text.trim_end_matches('\0').trim();
        while !rest.is_empty() {
            let line = rest.lines().next()?;
            let length = if line.starts_with("//") {
                line.len()
            } else if let Some(version) = line.strip_prefix(".version ") {
                let (major, minor) = version.split_once('.')?;
                let (major, minor) = (major.parse().ok()?, minor.trim().parse().ok()?);
                let (major, minor) = VERSION.min((major, minor));
                head.push_str(&format!(".version {major}.{minor}\n"));
                line.len()
            } else if line.starts_with(".target ") || line.starts_with(".address_size ") {
                head.push_str(line);
                head.push('\n');
                line.len()
            } else {
                let item = item(rest)?;
                items.push(item);
                items.last()?.text.len()
            };
            rest = rest[length..].trim_start();
        }
        (!head.is_empty()).then_some(PtxUnit { head, items })
    }

    /// Returns the module with these kernels, their functions and variables, and the closing zero that
    /// drivers require; `None` if a kernel is missing.
    pub(super) fn module(&self, kernels: &[impl AsRef<str>]) -> Option<Vec<u8>> {
        let wanted =
            |item: &Item| item.is_kernel && kernels.iter().any(|it| it.as_ref() == item.name);
        if self.items.iter().filter(|it| wanted(it)).count() != kernels.len() {
            return None;
        }
        let mut chosen: Vec<bool> = self.items.iter().map(wanted).collect();
        // A function may be declared before its use and defined after it.
        while let Some(used) = (0..self.items.len()).find(|&at| {
            let item = &self.items[at];
            let mut users = self.items.iter().zip(&chosen).filter(|(_, chosen)| **chosen);
            !chosen[at] && !item.is_kernel && users.any(|(user, _)| user.text.contains(item.name))
        }) {
            chosen[used] = true;
        }
        let mut module = self.head.clone();
        for (item, _) in self.items.iter().zip(&chosen).filter(|(_, chosen)| **chosen) {
            let lines = item.text.lines().map(str::trim);
            for line in lines.filter(|it| !it.is_empty() && !it.starts_with("//")) {
                module.push_str(line);
                module.push('\n');
            }
        }
        module.push('\0');
        Some(module.into_bytes())
    }
}

/// The definition or declaration that a text begins with.
fn item(text: &str) -> Option<Item<'_>> {
    let mut depth = 0;
    let mut end = None;
    let mut is_comment = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' if text[at..].starts_with("//") => is_comment = true,
            b'\n' => is_comment = false,
            _ if is_comment => {}
            b'{' | b'(' => depth += 1,
            b')' => depth -= 1,
            b'}' => {
                depth -= 1;
                // Values of a variable are followed by a semicolon.
                if depth == 0 && !text[at + 1..].trim_start().starts_with(';') {
                    end = Some(at + 1);
                }
            }
            b';' if depth == 0 => end = Some(at + 1),
            _ => {}
        }
        if end.is_some() {
            break;
        }
    }
    let text = text.get(..end?)?;
    // The results of a function come before its name.
    let declared = match text.find(".func") {
        Some(at) if text[at + 5..].trim_start().starts_with('(') => {
            &text[at + text[at..].find(')')? + 1..]
        }
        _ => text,
    };
    let is_name = |it: &&str| {
        it.starts_with(|first: char| first.is_ascii_alphabetic() || "_$".contains(first))
    };
    let name =
        declared.split(|it: char| it.is_whitespace() || "([=;".contains(it)).find(is_name)?;
    Some(Item {
        name,
        is_kernel: text.starts_with(".visible .entry") || text.starts_with(".entry"),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//\n// Generated\n//\n\n.version 8.8\n.target sm_75\n.address_size 64\n\n\
        \t// .globl\tfirst\n.global .align 4 .u32 unused;\n\
        .const .align 4 .b8 table[4] = {1, 2, 3, 4};\n\
        .func (.param .b32 result) helper(\n\t.param .b32 x\n)\n;\n\
        .visible .entry first(\n\t.param .u32 first_param_0\n)\n.maxntid 256, 1, 1\n{\n\
        \t{ // } inline\n\tcall helper;\n\t}\n\tret;\n}\n\
        .visible .entry second()\n{\n\t// nothing\n\tret;\n\n}\n\
        .func (.param .b32 result) helper(\n\t.param .b32 x\n)\n{\n\tld.const.u32 %r1, [table];\n\tret;\n}\n\0";

    #[test]
    fn each_kernel_has_a_module_of_what_it_uses() {
        let unit = PtxUnit::parse(TEXT).expect("PTX");
        let module =
            |names: &[&str]| unit.module(names).map(|it| String::from_utf8(it).expect("text"));
        let head = ".version 7.0\n.target sm_75\n.address_size 64\n";
        assert_eq!(
            module(&["second"]),
            Some(format!("{head}.visible .entry second()\n{{\nret;\n}}\n\0"))
        );
        let first = module(&["first"]).expect("it is there");
        for part in [
            ".const .align 4 .b8 table[4]",
            "ld.const.u32 %r1, [table]",
            "call helper;",
            "first_param_0",
        ] {
            assert!(first.contains(part), "{part}: {first}");
        }
        assert!(!first.contains("unused") && !first.contains("second"), "{first}");
        assert!(module(&["first", "second"]).is_some_and(|it| it.contains("entry second")));
        assert_eq!(module(&["third"]), None);
        assert_eq!(module(&["helper"]), None);
    }

    #[test]
    fn older_text_keeps_its_version_and_other_text_is_none() {
        let old = TEXT.replace("8.8", "6.4");
        let unit = PtxUnit::parse(&old).expect("PTX");
        assert!(unit.module(&["first"]).is_some_and(|it| it.starts_with(b".version 6.4\n")));
        for text in ["", "\x7fELF", ".version x.y\n", "int main() {}", ".version 7.0\n.entry f() {"]
        {
            assert!(PtxUnit::parse(text).is_none(), "{text}");
        }
    }
}
