//! Calls an existing C library on arrays of this crate.
//!
//! `cargo run --release --example glue` compiles `examples/glue/heat.c` and loads it. The library
//! works on the memory of a `DeviceArray` in the order of a stream, as a GPU library does that is
//! called with a device pointer and a stream. Array operations run before and after it, and nothing
//! waits between them. The host is the device here, so its pointers are ordinary ones.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the example shows its result")]

use gpuarray::array::functions;
use gpuarray::memory::{Access, AccessGuard};
use gpuarray::{Choice, Device, DeviceArray, EventOptions, IndexItem, StreamOptions};
use libloading::Library;
use std::error::Error;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

const WIDTH: usize = 1024;
const HEIGHT: usize = 768;
const STEPS: usize = 50;
const K: f32 = 0.2;

type HeatStep = unsafe extern "C" fn(*const f32, *mut f32, c_int, c_int, f32);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("glue: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let heat = Heat::load()?;
    let device = gpuarray::open(Choice::Host)?.device(0)?;
    let stream = device.create_stream(StreamOptions::default())?;
    let start = hot_spot(&device)?.on(&stream)?;

    let (begin, end) = (
        device.create_event(EventOptions::default())?,
        device.create_event(EventOptions::default())?,
    );
    stream.record(begin.as_ref())?;
    let by_library = heat.run(&start, STEPS)?;
    stream.record(end.as_ref())?;
    stream.synchronize()?;
    let library_ms = end.elapsed_since(begin.as_ref())?;

    let clock = Instant::now();
    let by_arrays = with_arrays(&start, STEPS)?;
    stream.synchronize()?;
    let arrays_ms = clock.elapsed().as_secs_f64() * 1e3;

    let difference = (&by_library - &by_arrays)?.map(functions::Absolute)?.max()?;
    println!("device                {}", device.properties().name);
    println!("plate                 {WIDTH} x {HEIGHT} cells, {STEPS} steps");
    println!("C library, in order   {library_ms:.1} ms");
    println!("array operations      {arrays_ms:.1} ms");
    println!("hottest cell          {:.3} (was {:.3})", by_library.max()?, start.max()?);
    println!("largest difference    {difference:.1e}");
    if difference > 1e-4 {
        return Err(format!("the two results differ by {difference}").into());
    }
    Ok(())
}

/// A cold plate with a hot square in it.
fn hot_spot(device: &Arc<dyn Device>) -> gpuarray::Result<DeviceArray<f32>> {
    let plate = DeviceArray::zeros(device, &[HEIGHT, WIDTH])?;
    plate.index(&[(300..400).into(), (400..600).into()])?.fill(100.0)?;
    Ok(plate)
}

/// The library, loaded.
struct Heat {
    step: HeatStep,
    /// Keeps the code of `step` in memory.
    library: Arc<Library>,
}

impl Heat {
    fn load() -> Result<Heat, Box<dyn Error>> {
        let path = compile()?;
        // SAFETY: the library was just made from heat.c, which runs nothing when it is loaded,
        // and the symbol has the type that heat.c declares.
        unsafe {
            let library = Library::new(&path)?;
            // The loaded code stays when its file is gone.
            std::fs::remove_file(&path)?;
            let step = *library.get::<HeatStep>(b"heat_step\0")?;
            Ok(Heat { step, library: Arc::new(library) })
        }
    }

    /// Queues the steps after the work of the array's stream. Returns the array that holds the
    /// result once they have run.
    fn run(&self, start: &DeviceArray<f32>, steps: usize) -> gpuarray::Result<DeviceArray<f32>> {
        let mut from = start.copy()?;
        let mut to = start.copy()?;
        for _ in 0..steps {
            self.queue(&from, &to)?;
            std::mem::swap(&mut from, &mut to);
        }
        Ok(from)
    }

    /// Queues one call of the library. The guard announces the use of the raw pointers, as array
    /// operations announce theirs: the call runs after all earlier work on either array. Later
    /// work runs after the call, and so does the free of an array that is dropped meanwhile.
    fn queue(&self, from: &DeviceArray<f32>, to: &DeviceArray<f32>) -> gpuarray::Result<()> {
        let (step, library) = (self.step, self.library.clone());
        let (input, output) = (from.as_device_pointer(), to.as_device_pointer());
        let stream = from.stream();
        let uses =
            [(from.untyped().memory(), Access::Read), (to.untyped().memory(), Access::Write)];
        let _guard = AccessGuard::acquire(stream, &uses)?;
        stream.host_function(move || {
            let (width, height) = (WIDTH as c_int, HEIGHT as c_int);
            // SAFETY: both arrays are dense, of this shape and apart from each other, and the
            // guard has ordered this call among all other uses and the free of their memory.
            unsafe { step(input as *const f32, output as *mut f32, width, height, K) };
            drop(library);
        })
    }
}

/// The same steps as array operations on shifted views.
fn with_arrays(start: &DeviceArray<f32>, steps: usize) -> gpuarray::Result<DeviceArray<f32>> {
    let plate = start.copy()?;
    let (height, width) = (HEIGHT as isize, WIDTH as isize);
    let (rows, columns) = (IndexItem::from(1..height - 1), IndexItem::from(1..width - 1));
    let neighbours = [
        plate.index(&[rows, IndexItem::from(..width - 2)])?,
        plate.index(&[rows, IndexItem::from(2..)])?,
        plate.index(&[IndexItem::from(..height - 2), columns])?,
        plate.index(&[IndexItem::from(2..), columns])?,
    ];
    let mut cells = plate.index(&[rows, columns])?;
    for _ in 0..steps {
        let mut change = (&neighbours[0] + &neighbours[1])?;
        change.update(functions::Add, &neighbours[2])?;
        change.update(functions::Add, &neighbours[3])?;
        change.update(functions::Subtract, &(&cells * 4.0)?)?;
        change.update_scalar(functions::Multiply, K)?;
        cells.update(functions::Add, &change)?;
    }
    Ok(plate)
}

/// Compiles heat.c to a shared library in this program's folder.
fn compile() -> Result<PathBuf, Box<dyn Error>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/glue/heat.c");
    let program = std::env::current_exe()?;
    let folder = program.parent().ok_or("this program lies in no folder")?;
    let (machine, system) = (std::env::consts::ARCH, std::env::consts::OS);
    let target = match system {
        "macos" => format!("{machine}-apple-darwin"),
        _ => format!("{machine}-unknown-{system}-gnu"),
    };
    let compiler = cc::Build::new()
        .cargo_metadata(false)
        .cargo_warnings(false)
        .target(&target)
        .host(&target)
        .opt_level(3)
        .out_dir(folder)
        .try_get_compiler()
        .map_err(|error| format!("no C compiler: {error}; install one or set CC"))?;
    let library =
        folder.join(format!("heat-{}{}", std::process::id(), std::env::consts::DLL_SUFFIX));
    let mut command: Command = compiler.to_command();
    command.arg("-shared").arg("-fPIC").arg(&source).arg("-o").arg(&library);
    let output = command.output().map_err(|error| {
        let name = compiler.path().display();
        format!("the C compiler {name} cannot be run: {error}; install one or set CC")
    })?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} could not be compiled:\n{text}", source.display()).into());
    }
    Ok(library)
}
