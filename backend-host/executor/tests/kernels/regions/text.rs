//! The text of random kernels.

use super::tree::{Statement, Tree, Value};
use std::fmt::Write as _;

const HEAD: &str = "\
__device__ int mixed(int a, int b) { return a * 31 ^ (b + (a & 7)); }
template <class T> __device__ void add_to(T *place, int by) { *place += by; }
template <class T> __device__ void mix_into(T &place, int with) { place = place * 3 ^ with; }
";

/// Returns the text of kernels.
pub(crate) fn text(trees: &[Tree]) -> String {
    let mut text = HEAD.to_owned();
    for (number, tree) in trees.iter().enumerate() {
        let _ = writeln!(
            text,
            "extern \"C\" __global__ void kernel_{number}(int p0, int p1, const int *data, int *out, int *written) {{\n\
             __shared__ int shared[512];\n\
             const int threads = blockDim.x * blockDim.y * blockDim.z;\n\
             const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);\n\
             const int block = blockIdx.x + gridDim.x * blockIdx.y;"
        );
        write_all(&mut text, &tree.statements);
        let _ = writeln!(text, "out[block * threads + t] = {};\n}}", tree.result.text());
    }
    text
}

fn write_all(text: &mut String, statements: &[Statement]) {
    for statement in statements {
        statement.write(text);
    }
}

impl Value {
    fn text(&self) -> String {
        let axis = |axis: &usize| ["x", "y", "z"][*axis];
        match self {
            Value::Number(number) => number.to_string(),
            Value::Parameter(number) => format!("p{number}"),
            Value::Index(which, along) => {
                let which = ["threadIdx", "blockIdx", "blockDim", "gridDim"][*which];
                format!("{which}.{}", axis(along))
            }
            Value::Thread => "t".to_owned(),
            Value::Variable(id) => format!("v{id}"),
            Value::Element(id, at) => format!("v{id}[{} & 3]", at.text()),
            Value::OwnShared => "shared[t]".to_owned(),
            Value::Binary(operator @ ("<" | "=="), a, b) => {
                format!("((int)({}) {operator} (int)({}))", a.text(), b.text())
            }
            Value::Binary(operator, a, b) => format!("({} {operator} {})", a.text(), b.text()),
            Value::Choice(a, b, c) => {
                format!("({} ? (int){} : (int){})", a.text(), b.text(), c.text())
            }
            Value::Call(a, b) => format!("mixed({}, {})", a.text(), b.text()),
        }
    }
}

impl Statement {
    fn write(&self, text: &mut String) {
        let _ = match self {
            Statement::Barrier => writeln!(text, "__syncthreads();"),
            Statement::Declare { id, kind, is_const, value } => {
                let (is_const, value) = (if *is_const { "const " } else { "" }, value.as_ref());
                let name = kind.name();
                let value = value.map_or(String::new(), |it| format!(" = ({name})({})", it.text()));
                writeln!(text, "{is_const}{name} v{id}{value};")
            }
            Statement::Array { id, values } => match values {
                Some([a, b]) => {
                    writeln!(text, "int v{id}[4] = {{(int)({}), (int)({})}};", a.text(), b.text())
                }
                None => writeln!(text, "int v{id}[4];"),
            },
            // The compiler would warn about a constant that does not fit.
            Statement::Assign(id, kind, "=", value) => {
                writeln!(text, "v{id} = ({})({});", kind.name(), value.text())
            }
            Statement::Assign(id, _, operator, value) => {
                writeln!(text, "v{id} {operator} {};", value.text())
            }
            Statement::Step(id, operator) => writeln!(text, "v{id}{operator};"),
            Statement::AssignElement(id, at, operator, value) => {
                writeln!(text, "v{id}[{} & 3] {operator} {};", at.text(), value.text())
            }
            Statement::AssignShared(operator, value) => {
                writeln!(text, "shared[t] {operator} {};", value.text())
            }
            Statement::Exchange(id, by) => writeln!(
                text,
                "shared[t] ^= v{id};\n__syncthreads();\n\
                 v{id} += shared[(t + (({}) & 63)) % threads];\n__syncthreads();",
                by.text()
            ),
            Statement::If(test, then, other) => {
                let _ = writeln!(text, "if ({}) {{", test.text());
                write_all(text, then);
                if !other.is_empty() {
                    let _ = writeln!(text, "}} else {{");
                    write_all(text, other);
                }
                writeln!(text, "}}")
            }
            Statement::For { id, from, to, by, body } => {
                let by = if *by == 1 { format!("++v{id}") } else { format!("v{id} += {by}") };
                let (from, to) = (from.text(), to.text());
                let _ = writeln!(text, "for (int v{id} = {from}; v{id} < (int)({to}); {by}) {{");
                write_all(text, body);
                writeln!(text, "}}")
            }
            Statement::While { id, times, asks_last, body } => {
                // The variable counts down at the end of the body, which no jump bypasses.
                let _ = writeln!(text, "{{ int v{id} = {};", times.text());
                let _ = match asks_last {
                    true => writeln!(text, "do {{"),
                    false => writeln!(text, "while (v{id} > 0) {{"),
                };
                write_all(text, body);
                let end = if *asks_last { format!(" while (v{id} > 0);") } else { String::new() };
                writeln!(text, "v{id} -= 1; }}{end} }}")
            }
            Statement::Strided { id, sum, limit, writes } => {
                let each = match writes {
                    true => {
                        format!("{{ v{sum} += data[v{id}]; written[v{id}] += data[v{id}] + p0; }}")
                    }
                    false => format!("v{sum} += data[v{id}] * (v{id} + 1);"),
                };
                let kind = ["int", "unsigned", "long", "size_t"][id % 4];
                let (before, kind) = match id % 3 {
                    0 => (format!("{kind} v{id}; "), ""),
                    _ => (String::new(), kind),
                };
                writeln!(
                    text,
                    "{before}for ({kind} v{id} = block * threads + t; v{id} < ((int)({}) & 255); \
                     v{id} += threads * gridDim.x * gridDim.y) {each}",
                    limit.text()
                )
            }
            Statement::Break => writeln!(text, "break;"),
            Statement::Continue => writeln!(text, "continue;"),
            Statement::Return(value) => {
                writeln!(text, "{{ out[block * threads + t] = {}; return; }}", value.text())
            }
            Statement::CallPointer(id, value) => {
                writeln!(text, "add_to(&v{id}, {});", value.text())
            }
            Statement::CallReference(id, value) => {
                writeln!(text, "mix_into(v{id}, {});", value.text())
            }
            Statement::Block(body) => {
                let _ = writeln!(text, "{{");
                write_all(text, body);
                writeln!(text, "}}")
            }
        };
    }
}
