//! Gates hold up a stream's work, so that a test knows which work has not run yet.
//!
//! If host functions of several streams run concurrently, a gate is a queued host function. CUDA
//! runs all host functions on one thread, which a waiting function would block; there a gate is a
//! kernel that waits for a number in pinned memory.

use crate::context::pause;
use gpuarray::array::functions;
use gpuarray::memory::PinnedMemory;
use gpuarray::{
    Device, DeviceArray, DeviceId, Kernel, LaunchConfig, LoadOptions, ModuleSource, Result, Stream,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const SOURCE: &str = "extern \"C\" __global__ void wait(volatile int* flag, long long turns) {
    while (turns > 0 && *flag == 0) { --turns; }
}";

thread_local! {
    /// The device whose kernels act as gates in this thread's test; `None` if host functions do.
    static DEVICE: RefCell<Option<Arc<dyn Device>>> = const { RefCell::new(None) };
}

/// The resources for the gates of one device, valid until it is reset. They are created in advance,
/// because allocating or loading while a gate is closed might wait for the gate.
struct Gates {
    device: DeviceId,
    epoch: u64,
    kernel: Arc<dyn Kernel>,
    /// Memory for the flags of many gates.
    flags: &'static PinnedMemory,
    used: usize,
}

const FLAGS: usize = 4096;

static GATES: Mutex<Option<Gates>> = Mutex::new(None);

/// Chooses the kind of gate for this thread's test.
pub(crate) fn prepare(device: &Arc<dyn Device>, functions: bool) -> Result<()> {
    static WARM: Mutex<Option<(DeviceId, u64)>> = Mutex::new(None);
    DEVICE.set((!functions).then(|| device.clone()));
    let mut warm = WARM.lock().unwrap();
    let key = (device.id(), device.epoch());
    if functions || *warm == Some(key) {
        return Ok(());
    }
    // The driver loads code only while no kernel runs, and a closed gate is a running kernel.
    let mut small = DeviceArray::<i32>::zeros(device, &[4, 4])?;
    (&small + &small)?;
    (&small + 1)?;
    small.index(&[1.into()])?.fill(-1)?;
    small.fill(1)?;
    small.transpose(None)?.index(&[0.into()])?.copy()?;
    let mut large = DeviceArray::<i64>::ones(device, &[4])?;
    large.update_scalar(functions::Multiply, 1)?;
    large.update_scalar(functions::Add, 1)?;
    take(device)?;
    *warm = Some(key);
    device.synchronize()
}

/// Returns the kernel, and an unused flag for a gate.
fn take(device: &Arc<dyn Device>) -> Result<(Arc<dyn Kernel>, *mut u8)> {
    let mut known = GATES.lock().unwrap();
    let (id, epoch) = (device.id(), device.epoch());
    let gates = match &mut *known {
        Some(gates) if (gates.device, gates.epoch) == (id, epoch) && gates.used < FLAGS => gates,
        slot => {
            let source = ModuleSource::Source { text: SOURCE, name: "gate.cu", options: &[] };
            // SAFETY: the text contains only functions.
            let kernel =
                unsafe { device.load_module(&source, &LoadOptions::default()) }?.kernel("wait")?;
            // Never freed, because freeing waits for the device, which may wait for a gate.
            let flags = Box::leak(Box::new(PinnedMemory::new(device, 4 * FLAGS)?));
            slot.insert(Gates { device: id, epoch, kernel, flags, used: 0 })
        }
    };
    gates.used += 1;
    let flag = gates.flags.pointer().wrapping_add(4 * (gates.used - 1));
    Ok((gates.kernel.clone(), flag))
}

/// The flag that a kernel waits for.
#[derive(Clone, Copy)]
struct Flag(*mut u8);

// SAFETY: the flag is accessed only by atomics, and lives as long as the process.
unsafe impl Send for Flag {}
// SAFETY: as above.
unsafe impl Sync for Flag {}

/// Closed until it is opened, or until so much time has passed that the test has failed.
#[derive(Clone, Default)]
pub(crate) struct Gate {
    state: Arc<(Mutex<bool>, Condvar)>,
    flag: Option<Flag>,
}

impl Gate {
    /// Returns a closed gate that holds up the work queued on `stream` after this call.
    pub(crate) fn on(stream: &dyn Stream) -> Result<Gate> {
        let mut gate = Gate::default();
        if let Some(device) = DEVICE.with_borrow(Clone::clone) {
            let (kernel, flag) = take(&device)?;
            let mut address = device.pinned_address(flag)?;
            // A limit of some tens of seconds: each turn reads over the bus.
            let mut turns = 20_000_000_i64;
            let arguments = [(&raw mut address).cast(), (&raw mut turns).cast()];
            let config = LaunchConfig::linear(1, 1);
            // SAFETY: the kernel takes an address and a number.
            unsafe { kernel.launch_raw(stream, &config, &arguments)? };
            gate.flag = Some(Flag(flag));
            return Ok(gate);
        }
        let copy = gate.clone();
        stream.host_function(Box::new(move || copy.wait()))?;
        Ok(gate)
    }

    /// Opens the gate for all waiters.
    pub(crate) fn open(&self) {
        if let Some(Flag(flag)) = self.flag {
            // SAFETY: the memory is four aligned bytes, accessed only by atomics.
            let flag = unsafe { AtomicI32::from_ptr(flag.cast()) };
            flag.store(1, Ordering::SeqCst);
        }
        *self.state.0.lock().unwrap() = true;
        self.state.1.notify_all();
    }

    fn wait(&self) {
        let open = self.state.0.lock().unwrap();
        // A failed test does not open its gate, but its threads must still end.
        let limit = Duration::from_secs(30);
        drop(self.state.1.wait_timeout_while(open, limit, |open| !*open));
    }

    /// Opens the gate after a pause, for a caller that waits on the stream.
    pub(crate) fn open_later(&self) -> std::thread::JoinHandle<()> {
        let gate = self.clone();
        std::thread::spawn(move || {
            pause();
            gate.open();
        })
    }
}
