//! The table of arithmetic instructions: their modifiers, types and operands.
//!
//! An instruction is a call of the function with its name in `cuda_c/ptx/`. The template arguments are the
//! modifiers, as `modes<...>`, and then the types in order.
//!
//! A pattern describes the modifiers and types. Its parts are separated by dots, and alternatives by bars. A
//! part that ends with `?` is optional.
//!
//! The operands are the results, `=`, and the arguments:
//!
//! - `T` and `U` are the first and second type of the instruction.
//! - `W` is the integer type with twice the bits of `T`.
//! - `p` is a predicate. `&p` is a predicate that is present only with a modifier that combines it.
//! - `T|p` is a result with an optional second result; `p|p` is a pair of predicates.
//! - `cc` is the carry, which the function takes by reference.
//! - `[]` is an address of a number of type `T`.
//! - Other words are types by their name.
//! - An operand that ends with `?` is optional.

/// A form of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) pattern: &'static str,
    pub(super) operands: &'static str,
}

const fn row(name: &'static str, pattern: &'static str, operands: &'static str) -> Row {
    Row { name, pattern, operands }
}

/// Names that patterns use for lists of alternatives.
pub(super) const LISTS: [(&str, &str); 9] = [
    ("INT", "u16|u32|u64|s16|s32|s64"),
    ("WORD", "u32|s32"),
    ("CARRY", "u32|s32|u64|s64"),
    ("NARROW", "f16|f16x2|bf16|bf16x2"),
    ("ROUND", "rn|rz|rm|rp"),
    ("SIGNED", "eq|ne|lt|le|gt|ge"),
    ("FLOAT", "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"),
    ("BOOL", "and|or|xor"),
    ("SHARED", "shared|shared::cta"),
];

pub(super) const ROWS: &[Row] = &[
    // Integers.
    row("add", "INT|u16x2|s16x2", "T = T T"),
    row("add", "sat.s32", "T = T T"),
    row("add", "cc.CARRY", "T = T T cc"),
    row("addc", "cc?.CARRY", "T = T T cc"),
    row("sub", "INT", "T = T T"),
    row("sub", "sat.s32", "T = T T"),
    row("sub", "cc.CARRY", "T = T T cc"),
    row("subc", "cc?.CARRY", "T = T T cc"),
    row("mul", "hi|lo.INT", "T = T T"),
    row("mul", "wide.u16|s16|u32|s32", "W = T T"),
    row("mad", "hi|lo.INT", "T = T T T"),
    row("mad", "hi.sat.s32", "T = T T T"),
    row("mad", "wide.u16|s16|u32|s32", "W = T T W"),
    row("mad", "hi|lo.cc.CARRY", "T = T T T cc"),
    row("madc", "hi|lo.cc?.CARRY", "T = T T T cc"),
    row("mul24", "hi|lo.WORD", "T = T T"),
    row("mad24", "hi|lo.WORD", "T = T T T"),
    row("mad24", "hi.sat.s32", "T = T T T"),
    row("sad", "INT", "T = T T T"),
    row("div", "INT", "T = T T"),
    row("rem", "INT", "T = T T"),
    row("abs", "s16|s32|s64", "T = T"),
    row("neg", "s16|s32|s64", "T = T"),
    row("min", "INT|u16x2|s16x2", "T = T T"),
    row("min", "relu.s16x2|s32", "T = T T"),
    row("max", "INT|u16x2|s16x2", "T = T T"),
    row("max", "relu.s16x2|s32", "T = T T"),
    row("dp4a", "WORD.WORD", "s32 = T U s32"),
    row("dp2a", "lo|hi.WORD.WORD", "s32 = T U s32"),
    // Bits.
    row("popc", "b32|b64", "u32 = T"),
    row("clz", "b32|b64", "u32 = T"),
    row("bfind", "shiftamt?.u32|u64|s32|s64", "u32 = T"),
    row("fns", "b32", "b32 = b32 b32 s32"),
    row("brev", "b32|b64", "T = T"),
    row("bfe", "u32|u64|s32|s64", "T = T u32 u32"),
    row("bfi", "b32|b64", "T = T T u32 u32"),
    row("bmsk", "clamp|wrap.b32", "T = T T"),
    row("szext", "clamp|wrap.u32|s32", "T = T u32"),
    row("and", "pred|b16|b32|b64", "T = T T"),
    row("or", "pred|b16|b32|b64", "T = T T"),
    row("xor", "pred|b16|b32|b64", "T = T T"),
    row("not", "pred|b16|b32|b64", "T = T"),
    row("cnot", "b16|b32|b64", "T = T"),
    row("lop3", "b32", "T = T T T u32"),
    row("lop3", "and|or.b32", "T|p = T T T u32 p"),
    row("shf", "l|r.clamp|wrap.b32", "T = T T u32"),
    row("shl", "b16|b32|b64", "T = T u32"),
    row("shr", "b16|b32|b64|INT", "T = T u32"),
    row("prmt", "b32.f4e|b4e|rc8|ecl|ecr|rc16?", "T = T T u32"),
    // Comparisons and selections.
    row("set", "eq|ne.BOOL?.WORD|f32.b16|b32|b64", "T = U U &p"),
    row("set", "SIGNED.BOOL?.WORD|f32.INT", "T = U U &p"),
    row("set", "lo|ls|hi|hs.BOOL?.WORD|f32.u16|u32|u64", "T = U U &p"),
    row("set", "FLOAT.BOOL?.ftz?.WORD|f32.f32", "T = U U &p"),
    row("set", "FLOAT.BOOL?.WORD|f32.f64", "T = U U &p"),
    row("set", "FLOAT.BOOL?.ftz?.WORD|u16|s16|f16.f16", "T = U U &p"),
    row("set", "FLOAT.BOOL?.WORD|u16|s16|bf16.bf16", "T = U U &p"),
    row("set", "FLOAT.BOOL?.ftz?.f16x2.f16x2", "T = U U &p"),
    row("set", "FLOAT.BOOL?.bf16x2.bf16x2", "T = U U &p"),
    row("setp", "eq|ne.BOOL?.b16|b32|b64", "p|p = T T &p"),
    row("setp", "SIGNED.BOOL?.INT", "p|p = T T &p"),
    row("setp", "lo|ls|hi|hs.BOOL?.u16|u32|u64", "p|p = T T &p"),
    row("setp", "FLOAT.BOOL?.ftz?.f32|f16x2", "p|p = T T &p"),
    row("setp", "FLOAT.BOOL?.f64|bf16x2", "p|p = T T &p"),
    row("setp", "FLOAT.BOOL?.ftz?.f16", "p = T T &p"),
    row("setp", "FLOAT.BOOL?.bf16", "p = T T &p"),
    row("selp", "b16|b32|b64|INT|f32|f64", "T = T T p"),
    row("slct", "b16|b32|b64|INT|f32|f64.s32", "T = T T U"),
    row("slct", "ftz?.b16|b32|b64|INT|f32|f64.f32", "T = T T U"),
    // Floating point.
    row("add", "ROUND?.ftz?.sat?.f32", "T = T T"),
    row("add", "ROUND?.f64", "T = T T"),
    row("add", "rn?.ftz?.sat?.f16|f16x2", "T = T T"),
    row("add", "rn?.bf16|bf16x2", "T = T T"),
    row("sub", "ROUND?.ftz?.sat?.f32", "T = T T"),
    row("sub", "ROUND?.f64", "T = T T"),
    row("sub", "rn?.ftz?.sat?.f16|f16x2", "T = T T"),
    row("sub", "rn?.bf16|bf16x2", "T = T T"),
    row("mul", "ROUND?.ftz?.sat?.f32", "T = T T"),
    row("mul", "ROUND?.f64", "T = T T"),
    row("mul", "rn?.ftz?.sat?.f16|f16x2", "T = T T"),
    row("mul", "rn?.bf16|bf16x2", "T = T T"),
    row("fma", "ROUND.ftz?.sat?.f32", "T = T T T"),
    row("fma", "ROUND.f64", "T = T T T"),
    row("fma", "rn.ftz?.sat|relu?.f16|f16x2", "T = T T T"),
    row("fma", "rn.relu?.bf16|bf16x2", "T = T T T"),
    row("mad", "ROUND.ftz?.sat?.f32", "T = T T T"),
    row("mad", "ROUND.f64", "T = T T T"),
    row("div", "approx|full|rn|rz|rm|rp.ftz?.f32", "T = T T"),
    row("div", "ROUND.f64", "T = T T"),
    row("rcp", "approx|rn|rz|rm|rp.ftz?.f32", "T = T"),
    row("rcp", "ROUND.f64", "T = T"),
    row("rcp", "approx.ftz.f64", "T = T"),
    row("sqrt", "approx|rn|rz|rm|rp.ftz?.f32", "T = T"),
    row("sqrt", "ROUND.f64", "T = T"),
    row("rsqrt", "approx.ftz?.f32|f64", "T = T"),
    row("sin", "approx.ftz?.f32", "T = T"),
    row("cos", "approx.ftz?.f32", "T = T"),
    row("lg2", "approx.ftz?.f32", "T = T"),
    row("ex2", "approx.ftz?.f32", "T = T"),
    row("ex2", "approx.f16|f16x2", "T = T"),
    row("ex2", "approx.ftz.bf16|bf16x2", "T = T"),
    row("tanh", "approx.f32|NARROW", "T = T"),
    row("abs", "ftz?.f32|f16|f16x2", "T = T"),
    row("abs", "f64|bf16|bf16x2", "T = T"),
    row("neg", "ftz?.f32|f16|f16x2", "T = T"),
    row("neg", "f64|bf16|bf16x2", "T = T"),
    row("min", "f64", "T = T T"),
    row("min", "ftz?.NaN?.f32|f16|f16x2", "T = T T"),
    row("min", "NaN?.bf16|bf16x2", "T = T T"),
    row("min", "ftz?.NaN?.xorsign.abs.f32|f16|f16x2", "T = T T"),
    row("min", "NaN?.xorsign.abs.bf16|bf16x2", "T = T T"),
    row("max", "f64", "T = T T"),
    row("max", "ftz?.NaN?.f32|f16|f16x2", "T = T T"),
    row("max", "NaN?.bf16|bf16x2", "T = T T"),
    row("max", "ftz?.NaN?.xorsign.abs.f32|f16|f16x2", "T = T T"),
    row("max", "NaN?.xorsign.abs.bf16|bf16x2", "T = T T"),
    row("copysign", "f32|f64", "T = T T"),
    row("testp", "finite|infinite|number|notanumber|normal|subnormal.f32|f64", "p = T"),
    // Conversions of two numbers. The first becomes the upper half.
    row("cvt", "rn|rz.relu?.f16x2|bf16x2.f32", "T = U U"),
    row("cvt", "pack.sat.u16|s16.s32", "b32 = U U"),
    row("cvt", "pack.sat.u8|s8.s32.b32", "b32 = U U b32"),
    // Warp functions.
    row("shfl", "sync.up|down|bfly|idx.b32", "T|p = T u32 u32 u32"),
    row("shfl", "up|down|bfly|idx.b32", "T|p = T u32 u32"),
    row("vote", "sync.all|any|uni.pred", "p = p u32"),
    row("vote", "all|any|uni.pred", "p = p"),
    row("vote", "sync.ballot.b32", "b32 = p u32"),
    row("vote", "ballot.sync.b32", "b32 = p u32"),
    row("vote", "ballot.b32", "b32 = p"),
    row("match", "any.sync.b32|b64", "b32 = T u32"),
    row("match", "all.sync.b32|b64", "b32|p = T u32"),
    row("activemask", "b32", "b32 ="),
    row("redux", "sync.add|min|max.WORD", "T = T u32"),
    row("redux", "sync.and|or|xor.b32", "T = T u32"),
    row("elect", "sync", "b32|p = u32"),
    row("nanosleep", "u32", "= u32"),
    // Barriers and fences. The operands are the number of the barrier and the number of threads.
    row("bar_sync", "", "= u32 u32?"),
    row("bar_red", "and|or.pred", "p = u32 u32? p"),
    row("bar_red", "popc.u32", "u32 = u32 u32? p"),
    row("bar", "warp.sync", "= u32"),
    row("membar", "cta|gl|sys", "="),
    row("membar", "proxy.alias", "="),
    row("fence", "proxy.alias|async", "="),
    row("fence", "proxy.async.global|shared::cta|shared::cluster", "="),
    row("fence", "mbarrier_init.release.cluster", "="),
    row("fence", "sc|acq_rel|acquire|release?.cta|cluster|gpu|sys", "="),
    row("fence", "cta|cluster|gpu|sys.sc|acq_rel", "="),
    // Barriers in memory.
    row("mbarrier_init", "SHARED?.b64", "= [] u32"),
    row("mbarrier_inval", "SHARED?.b64", "= []"),
    row("mbarrier_arrive", "expect_tx.release|relaxed?.cta|cluster?.SHARED?.b64", "T = [] u32"),
    row("mbarrier_arrive", "noComplete?.release|relaxed?.cta|cluster?.SHARED?.b64", "T = [] u32?"),
    row(
        "mbarrier_arrive_drop",
        "expect_tx.release|relaxed?.cta|cluster?.SHARED?.b64",
        "T = [] u32",
    ),
    row(
        "mbarrier_arrive_drop",
        "noComplete?.release|relaxed?.cta|cluster?.SHARED?.b64",
        "T = [] u32?",
    ),
    row("mbarrier_expect_tx", "relaxed?.cta|cluster?.SHARED?.b64", "= [] u32"),
    row("mbarrier_complete_tx", "relaxed?.cta|cluster?.SHARED?.b64", "= [] u32"),
    row("mbarrier_test_wait", "acquire|relaxed?.cta|cluster?.SHARED?.b64", "p = [] T"),
    row("mbarrier_test_parity", "acquire|relaxed?.cta|cluster?.SHARED?.b64", "p = [] u32"),
    row("mbarrier_try_wait", "acquire|relaxed?.cta|cluster?.SHARED?.b64", "p = [] T u32?"),
    row("mbarrier_try_parity", "acquire|relaxed?.cta|cluster?.SHARED?.b64", "p = [] u32 u32?"),
    row("mbarrier_pending_count", "b64", "u32 = T"),
    row("cp_async_mbarrier_arrive", "noinc?.SHARED?.b64", "= []"),
    // Memory instructions other than accesses.
    row("cvta", "to?.global|const|local|shared|shared::cta.u64", "T = T"),
    row("isspacep", "global|local|const|SHARED", "p = b64"),
    row(
        "createpolicy",
        "fractional.L2::evict_last|L2::evict_first|L2::evict_normal|L2::evict_unchanged.b64",
        "T = f32?",
    ),
    row("trap", "", "="),
    row("brkpt", "", "="),
];
