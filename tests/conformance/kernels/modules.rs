//! Modules: code from source, bytes, text and files; invalid code; symbols.

use crate::context::{Context, error_of, expect_error};
use crate::harness::{Outcome, tests};
use crate::programs::{self, ONE, SOURCE, grid, launch, read, write};
use gpuarray::signature::{self, Number, Signatures, ValueType};
use gpuarray::{
    Device, DeviceArray, ErrorKind, Feature, KernelAttribute, LinkInput, LinkKind, LoadOptions,
    Module, ModuleSource, Result, Status,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

tests![
    a_device_without_a_compiler_says_so_by_name,
    what_is_no_code_is_refused,
    kernels_are_compiled_from_source needs [Kernels],
    options_reach_the_compiler needs [Kernels],
    a_source_that_does_not_compile_is_reported_with_the_log needs [Kernels],
    warnings_of_the_compiler_are_in_the_log needs [Kernels],
    a_zero_in_a_text_is_refused needs [Kernels],
    modules_from_source_carry_signatures needs [Kernels],
    compiled_code_is_loaded_from_bytes needs [Kernels],
    ptx_text_is_loaded needs [Ptx],
    a_module_is_loaded_from_a_file needs [Kernels],
    code_that_is_cut_short_is_refused needs [Kernels],
    machine_code_of_another_machine_is_refused needs [Kernels],
    ptx_that_does_not_compile_is_reported_with_the_log needs [Ptx],
    kernels_and_globals_that_are_missing_are_named needs [Kernels],
    globals_are_read_and_written_by_address needs [Kernels],
    each_module_has_globals_of_its_own needs [Kernels],
    a_kernel_outlives_its_module needs [Kernels],
    a_module_is_dropped_while_its_kernel_runs needs [Kernels],
    options_of_the_loader_are_taken needs [Jit],
    one_input_is_linked needs [Ptx],
    several_inputs_are_linked needs [Jit],
    what_does_not_link_is_reported needs [Jit],
    links_of_nothing_are_refused,
];

fn load(device: &Arc<dyn Device>, source: &ModuleSource<'_>) -> Result<Arc<dyn Module>> {
    // SAFETY: the suite's programs run nothing when they are loaded.
    unsafe { device.load_module(source, &LoadOptions::default()) }
}

fn text<'a>(text: &'a str, options: &'a [&'a str]) -> ModuleSource<'a> {
    ModuleSource::Source { text, name: "program.cu", options }
}

/// Returns the number that a module's kernel `set` writes for 7.
fn result_of(context: &Context, module: &dyn Module) -> Result<i32> {
    let out = DeviceArray::<i32>::zeros(&context.device, &[1])?;
    let stream = context.device.default_stream();
    launch(&module.kernel("set")?, ONE, &stream, (&mut out.clone(), 7))?;
    out.item()
}

/// Returns the option that makes the compiler return PTX instead of machine code.
fn ptx_option(context: &Context) -> String {
    let (major, minor) = context.device.properties().compute_capability;
    format!("--gpu-architecture=compute_{major}{minor}")
}

/// Returns the PTX text of a program.
fn ptx(context: &Context, program: &str, more: &[&str]) -> Result<Vec<u8>> {
    let architecture = ptx_option(context);
    let options = [&[architecture.as_str()], more].concat();
    let compiled = context.device.compile(program, "program.cu", &options)?;
    assert!(compiled.code.windows(8).any(|it| it == b".version"), "the code is PTX text");
    Ok(compiled.code)
}

fn a_device_without_a_compiler_says_so_by_name(context: &Context) -> Outcome {
    if context.can(Feature::Kernels) {
        assert_eq!(programs::kernel(context, "nothing")?.name(), "nothing");
        return Ok(());
    }
    let named = context.device.id().to_string();
    let kind = ErrorKind::Unsupported;
    expect_error(load(&context.device, &text(SOURCE, &[])), kind, &["load_module", &named])?;
    let compiled = context.device.compile(SOURCE, "program.cu", &[]);
    expect_error(compiled, kind, &["compile", &named])?;
    let input = LinkInput { kind: LinkKind::Ptx, data: b".version 7.0", name: "it" };
    let linked = context.device.link(&[input], &LoadOptions::default());
    expect_error(linked, kind, &["link", &named])
}

fn what_is_no_code_is_refused(context: &Context) -> Outcome {
    let garbage: Vec<u8> = (0..4096u32).map(|i| ((i * i * 31) >> 3) as u8).collect();
    let fatbin = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0xff, 0, 0, 0, 0, 0, 0, 0];
    for bytes in [&b""[..], b"\0", b"no code", &garbage, b"\x7fELF", &fatbin] {
        let error = error_of(load(&context.device, &ModuleSource::Image(bytes)));
        assert!(!error.status().is_success());
        if context.can(Feature::Kernels) {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.detail().contains(&bytes.len().to_string()), "{error}");
        } else {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
    }
    Ok(())
}

fn kernels_are_compiled_from_source(context: &Context) -> Outcome {
    let module = programs::module(context)?;
    assert_eq!(result_of(context, module.as_ref())?, 7);
    assert_eq!(module.kernel("set")?.name(), "set");
    Ok(())
}

fn options_reach_the_compiler(context: &Context) -> Outcome {
    let source = "extern \"C\" __global__ void set(int* out, int) { *out = VALUE + MORE; }";
    for (options, expected) in
        [(&["-DVALUE=3", "-DMORE=1"][..], 4), (&["-DVALUE=10", "-D", "MORE=20"], 30)]
    {
        let module = load(&context.device, &text(source, options))?;
        assert_eq!(result_of(context, module.as_ref())?, expected);
    }
    let refused = load(&context.device, &text(source, &["--no-such-option"]));
    expect_error(refused, ErrorKind::CompileFailed, &["no-such-option"])
}

fn a_source_that_does_not_compile_is_reported_with_the_log(context: &Context) -> Outcome {
    let source = "extern \"C\" __global__ void set(int* out) {\n    *out = no_such_name;\n}";
    let error = error_of(load(&context.device, &text(source, &[])));
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    for word in ["program.cu", "no_such_name"] {
        assert!(error.detail().contains(word), "the log does not name {word}: {error}");
    }
    let line = ["program.cu(2)", "program.cu:2:"].into_iter().any(|it| error.detail().contains(it));
    assert!(line, "the log does not give the line: {error}");
    Ok(())
}

fn warnings_of_the_compiler_are_in_the_log(context: &Context) -> Outcome {
    let source = "#warning mind the gap\nextern \"C\" __global__ void set() {}";
    // The second load uses the cached code and its cached log.
    for _ in 0..2 {
        let module = load(&context.device, &text(source, &[]))?;
        assert!(module.log().contains("mind the gap"), "{:?}", module.log());
    }
    Ok(())
}

fn a_zero_in_a_text_is_refused(context: &Context) -> Outcome {
    let kind = ErrorKind::InvalidArgument;
    expect_error(load(&context.device, &text("void f() {}\0", &[])), kind, &["zero"])?;
    let module = programs::module(context)?;
    expect_error(module.kernel("a\0b"), kind, &["a\\0b", "zero"])?;
    expect_error(module.global("a\0b"), kind, &["a\\0b", "zero"])
}

fn modules_from_source_carry_signatures(context: &Context) -> Outcome {
    let source = r#"
        typedef NUMBER real;
        extern "C" __global__ void axpy(real a, real *__restrict__ x, const real *y, size_t n) { x[n] += a * y[n]; }
        template <typename T> __global__ void fill(T *x, T value) { *x = value; }
        template __global__ void fill<int>(int *, int);
    "#;
    let module = load(&context.device, &text(source, &["-DNUMBER=double"]))?;
    let shown = |name| signature::of(module.as_ref(), name).map(|it| it.to_string());
    let axpy = "axpy(real a, real *__restrict__ x, const real *y, size_t n)";
    assert_eq!(shown("axpy").as_deref(), Some(axpy));
    let double = ValueType::Number(Number::Float(8));
    let axpy = signature::of(module.as_ref(), "axpy").expect("it has one");
    let types: Vec<_> = axpy.parameters.iter().map(|it| (it.of, it.is_pointer)).collect();
    let size = ValueType::Number(Number::Unsigned(8));
    assert_eq!(types, [(double, false), (double, true), (double, true), (size, false)]);
    let fill = signature::of(module.as_ref(), "_Z4fillIiEvPT_S0_").expect("it has one");
    assert!(fill.parameters.iter().all(|it| it.of == ValueType::Number(Number::Signed(4))));
    assert_eq!(shown("none"), None);
    // The same code without its text, and a text that does not match the code.
    let image = context.device.compile(source, "program.cu", &["-DNUMBER=double"])?.code;
    let loaded = load(&context.device, &ModuleSource::Image(&image))?;
    assert_eq!(signature::of(loaded.as_ref(), "axpy"), None);
    let kernel = loaded.kernel("axpy")?;
    if kernel.parameters()?.is_some() {
        let other = Signatures::of(source, &["-DNUMBER=float"]);
        assert_eq!(signature::of_kernel(&other, kernel.as_ref()), None);
    }
    let own = Signatures::of(source, &["-DNUMBER=double"]);
    assert!(signature::of_kernel(&own, kernel.as_ref()).is_some());
    Ok(())
}

fn compiled_code_is_loaded_from_bytes(context: &Context) -> Outcome {
    let compiled = context.device.compile(SOURCE, "programs.cu", &[])?;
    let module = load(&context.device, &ModuleSource::Image(&compiled.code))?;
    assert_eq!(result_of(context, module.as_ref())?, 7);
    Ok(())
}

fn ptx_text_is_loaded(context: &Context) -> Outcome {
    let with_zero = ptx(context, SOURCE, &[])?;
    let without = with_zero.strip_suffix(b"\0").unwrap_or(&with_zero);
    for bytes in [&with_zero[..], without] {
        let module = load(&context.device, &ModuleSource::Image(bytes))?;
        assert_eq!(result_of(context, module.as_ref())?, 7);
    }
    Ok(())
}

/// A file that is removed on drop.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> std::io::Result<File> {
        let name = format!("gpuarray-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes)?;
        Ok(File(path))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn a_module_is_loaded_from_a_file(context: &Context) -> Outcome {
    let code = context.device.compile(SOURCE, "programs.cu", &[])?.code;
    let file = File::new("module.bin", &code)?;
    let module = load(&context.device, &ModuleSource::File(&file.0))?;
    assert_eq!(result_of(context, module.as_ref())?, 7);
    let kind = ErrorKind::InvalidArgument;
    for path in ["/no/such/file.cubin", ""] {
        let missing = load(&context.device, &ModuleSource::File(Path::new(path)));
        expect_error(missing, ErrorKind::Driver, &["file", path, "FileNotFound"])?;
    }
    expect_error(load(&context.device, &ModuleSource::File(Path::new("/"))), kind, &["file /"])?;
    let none = File::new("text.bin", b"no code")?;
    expect_error(load(&context.device, &ModuleSource::File(&none.0)), kind, &["length of 7"])
}

fn code_that_is_cut_short_is_refused(context: &Context) -> Outcome {
    let code = context.device.compile(SOURCE, "programs.cu", &[])?.code;
    for length in [5, 20, 63, 64, code.len() / 2, code.len() - 1] {
        let error = error_of(load(&context.device, &ModuleSource::Image(&code[..length])));
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{length}: {error}");
        assert!(error.detail().contains("cut short"), "{length}: {error}");
    }
    Ok(())
}

fn machine_code_of_another_machine_is_refused(context: &Context) -> Outcome {
    let own = std::fs::read(std::env::current_exe()?)?;
    let error = error_of(load(&context.device, &ModuleSource::Image(&own)));
    assert_eq!(error.kind(), ErrorKind::CompileFailed, "{error}");
    Ok(())
}

fn ptx_that_does_not_compile_is_reported_with_the_log(context: &Context) -> Outcome {
    for wrong in [
        ".version 7.0\n.target sm_50\n.address_size 64\nno such directive\n",
        ".version 99.9\n.target sm_50\n.address_size 64\n",
    ] {
        let error = error_of(load(&context.device, &ModuleSource::Image(wrong.as_bytes())));
        assert_eq!(error.kind(), ErrorKind::CompileFailed, "{error}");
        assert!(error.detail().contains("ptxas"), "the driver's log is there: {error}");
    }
    Ok(())
}

fn kernels_and_globals_that_are_missing_are_named(context: &Context) -> Outcome {
    let module = programs::module(context)?;
    for name in ["no_such_name", "", "Set"] {
        for error in [error_of(module.kernel(name)), error_of(module.global(name))] {
            assert_eq!(error.status().code, Status::NOT_FOUND, "{error}");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.detail().contains(&format!("{name:?}")), "{error}");
        }
    }
    let error = error_of(module.kernel("counter"));
    assert_eq!(error.status().code, Status::NOT_FOUND, "a variable is no kernel: {error}");
    Ok(())
}

fn globals_are_read_and_written_by_address(context: &Context) -> Outcome {
    let module = programs::module(context)?;
    let stream = context.stream()?;
    let (counter, bytes) = module.global("counter")?;
    assert_eq!(bytes, 4);
    let mut value = [0i32];
    read(stream.as_ref(), counter, &mut value)?;
    assert_eq!(value, [5], "the value of its initialiser");
    write(stream.as_ref(), counter, &[100i32])?;
    launch(&module.kernel("count")?, grid(3, 32), &stream, ())?;
    read(stream.as_ref(), counter, &mut value)?;
    assert_eq!(value, [196]);

    let (factors, bytes) = module.global("factors")?;
    assert_eq!(bytes, 16);
    write(stream.as_ref(), factors, &[10f32, 20., 30., 40.])?;
    let values = DeviceArray::<f32>::ones(&context.device, &[4])?;
    launch(&module.kernel("scale")?, grid(1, 4), &stream, (&mut values.clone(),))?;
    assert_eq!(values.to_vec()?, [10., 20., 30., 40.]);
    Ok(())
}

fn each_module_has_globals_of_its_own(context: &Context) -> Outcome {
    let (first, second) = (programs::module(context)?, programs::module(context)?);
    let stream = context.stream()?;
    write(stream.as_ref(), first.global("counter")?.0, &[-1i32])?;
    let mut value = [0i32];
    read(stream.as_ref(), second.global("counter")?.0, &mut value)?;
    assert_eq!(value, [5]);
    Ok(())
}

fn a_kernel_outlives_its_module(context: &Context) -> Outcome {
    let kernels: Vec<_> =
        (0..3).map(|_| programs::kernel(context, "set")).collect::<Result<_>>()?;
    let stream = context.device.default_stream();
    for (value, kernel) in (0i32..).zip(&kernels) {
        let out = DeviceArray::<i32>::full(&context.device, &[1], -1)?;
        launch(kernel, ONE, &stream, (&mut out.clone(), value))?;
        assert_eq!(out.item()?, value);
    }
    Ok(())
}

fn a_module_is_dropped_while_its_kernel_runs(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let values = context.counting(&[1 << 16])?;
    let out = DeviceArray::<i32>::zeros(&context.device, &[1])?;
    let kernel = programs::kernel(context, "sum_of")?;
    let count = 1 << 16;
    launch(&kernel, ONE, &stream, (&mut out.clone(), &values, count))?;
    drop(kernel);
    let sum: i64 = (0..i64::from(count)).sum();
    assert_eq!(out.item()?, sum as i32, "wrapped as the kernel's integers are");
    Ok(())
}

/// A kernel that would use more than 32 registers.
const HUNGRY: &str = "extern \"C\" __global__ void hungry(float* x) {
    float a[48];
#pragma unroll
    for (int i = 0; i < 48; ++i) a[i] = x[i * 32 + threadIdx.x];
#pragma unroll
    for (int round = 0; round < 4; ++round)
#pragma unroll
        for (int i = 0; i < 48; ++i) a[i] = a[i] * a[(i + 7) % 48] + a[(i * 5 + 3) % 48];
#pragma unroll
    for (int i = 0; i < 48; ++i) x[i * 32 + threadIdx.x] = a[i];
}";

fn options_of_the_loader_are_taken(context: &Context) -> Outcome {
    let mut text = ptx(context, HUNGRY, &[])?;
    // The driver caches compiled code without the log, so each process compiles a different text.
    let own = format!("// {}\n", std::process::id());
    text.splice(0..0, own.bytes());
    let registers = |options: &LoadOptions| -> Result<(i32, String)> {
        // SAFETY: the suite's programs run nothing when they are loaded.
        let module = unsafe { context.device.load_module(&ModuleSource::Image(&text), options) }?;
        let count = module.kernel("hungry")?.attribute(KernelAttribute::NUM_REGS)?;
        Ok((count, module.log().to_owned()))
    };
    let (free, _) = registers(&LoadOptions::default())?;
    let limited = LoadOptions::default().max_registers(Some(32)).verbose(true).line_info(true);
    let (few, log) = registers(&limited)?;
    assert!(free > 32 && few <= 32, "{free} and {few} registers");
    assert!(log.contains("hungry"), "a verbose log names the kernel: {log:?}");
    for options in
        [LoadOptions::default().optimization_level(Some(0)), LoadOptions::default().debug(true)]
    {
        assert!(registers(&options)?.0 > 0);
    }
    Ok(())
}

fn link_ptx(context: &Context, texts: &[&[u8]]) -> Result<Vec<u8>> {
    let names = ["first.ptx", "second.ptx"];
    let inputs: Vec<_> = texts
        .iter()
        .zip(names)
        .map(|(data, name)| LinkInput { kind: LinkKind::Ptx, data, name })
        .collect();
    Ok(context.device.link(&inputs, &LoadOptions::default())?.code)
}

fn one_input_is_linked(context: &Context) -> Outcome {
    let code = link_ptx(context, &[&ptx(context, SOURCE, &[])?])?;
    let module = load(&context.device, &ModuleSource::Image(&code))?;
    assert_eq!(result_of(context, module.as_ref())?, 7);
    Ok(())
}

const CALLER: &str = "extern \"C\" __device__ int twice(int);
extern \"C\" __global__ void set(int* out, int value) { *out = twice(value); }";
const CALLED: &str = "extern \"C\" __device__ int twice(int value) { return 2 * value; }";

fn several_inputs_are_linked(context: &Context) -> Outcome {
    let relocatable = &["--relocatable-device-code=true"];
    let caller = ptx(context, CALLER, relocatable)?;
    let called = ptx(context, CALLED, relocatable)?;
    for texts in [[&caller[..], &called], [&called, &caller]] {
        let code = link_ptx(context, &texts)?;
        let module = load(&context.device, &ModuleSource::Image(&code))?;
        assert_eq!(result_of(context, module.as_ref())?, 14);
    }
    Ok(())
}

fn what_does_not_link_is_reported(context: &Context) -> Outcome {
    let caller = ptx(context, CALLER, &["--relocatable-device-code=true"])?;
    let error = error_of(link_ptx(context, &[&caller]));
    assert!(error.detail().contains("twice"), "the log names what is missing: {error}");
    assert_eq!(error.kind(), ErrorKind::CompileFailed, "{error}");
    let error = error_of(link_ptx(context, &[b".version 7.0\nnonsense"]));
    assert_eq!(error.kind(), ErrorKind::CompileFailed, "{error}");
    assert!(error.detail().contains("ptxas"), "{error}");
    Ok(())
}

fn links_of_nothing_are_refused(context: &Context) -> Outcome {
    let error = error_of(context.device.link(&[], &LoadOptions::default()));
    let kind = match context.can(Feature::Kernels) {
        true => ErrorKind::InvalidArgument,
        false => ErrorKind::Unsupported,
    };
    assert_eq!((error.kind(), error.call()), (kind, "link"));
    Ok(())
}
