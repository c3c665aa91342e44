//! Tests that need a separate process: faults, exits, forks, sharing between processes, missing
//! libraries. Each test starts this program again with the name of a scenario.

use crate::context::{Context, Gate};
use crate::harness::{Outcome, tests, time_limit};
use crate::programs::{SOURCE, read, write};
use crate::scenarios::{BACKEND_VARIABLE, FILE_VARIABLE, HANDLE_VARIABLE, SCENARIO_VARIABLE};
use gpuarray::memory::DeviceMemory;
use gpuarray::{DeviceArray, EventOptions, Feature, IpcHandle};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

tests![
    a_kernel_out_of_bounds_is_reported_and_recovered_from needs [Kernels, Reset],
    a_kernel_that_traps_is_reported_and_recovered_from needs [Kernels, Reset],
    a_failed_assertion_is_reported_and_recovered_from needs [Kernels, Reset],
    a_misaligned_access_is_reported_and_recovered_from needs [Kernels, Reset, Progress],
    a_fault_is_noticed_by_an_event needs [Kernels, Reset],
    a_fault_is_noticed_by_a_download needs [Kernels, Reset],
    a_fault_is_noticed_by_the_device needs [Kernels, Reset],
    a_fault_is_noticed_by_a_drop needs [Kernels, Reset],
    a_fault_leaves_the_other_device_alone needs [Kernels, SecondDevice, Reset],
    a_process_exits_after_a_fault needs [Kernels, Reset],
    a_process_exits_under_a_kernel_that_never_ends needs [Kernels],
    a_process_exits_with_work_in_flight,
    a_process_exits_from_another_thread,
    a_process_that_panics_with_work_in_flight_ends,
    a_reset_takes_what_was_made_before needs [Kernels, Reset],
    a_reset_leaves_the_other_device_alone needs [Kernels, Reset, SecondDevice],
    a_reset_ends_captures needs [Graphs, Reset],
    a_reset_gives_back_all_memory needs [Kernels, Reset],
    captures_resets_forks_and_drops_mix_on_threads,
    a_forked_child_is_told_and_harms_nobody,
    a_forked_child_exits_with_exit_handlers,
    a_child_forked_before_first_use_works,
    two_processes_share_memory needs [Sharing],
    two_processes_share_an_event needs [Sharing, Progress],
    queries_that_never_say_yes_are_not_waited_for needs [Kernels, Double],
    an_architecture_without_a_name_is_told needs [Kernels, Double, OwnTarget],
    an_event_that_was_never_recorded_is_complete needs [Kernels, Double],
    a_device_without_cooperative_launches_says_so needs [Kernels, Double],
    without_a_library_the_reason_is_given,
    without_a_compiler_the_remedy_is_given needs [Kernels],
];

/// Returns a command that runs this program with a scenario.
fn command(context: &Context, scenario: &str) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(SCENARIO_VARIABLE, scenario).env(BACKEND_VARIABLE, context.backend.name());
    command.env_remove("PYGPU_BACKEND");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// Waits for a scenario's end, and kills it if it takes too long.
fn finish(mut child: Child) -> Outcome {
    let stderr = child.stderr.take().expect("stderr is a pipe");
    let text = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = BufReader::new(stderr).read_to_string(&mut text);
        text
    });
    // The scenario must end before the test's own time limit, so that no process is left running.
    let deadline = Instant::now() + Duration::from_secs(time_limit()?) * 3 / 4;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = text.join().unwrap();
    match status {
        None => Err(format!("the process did not end; it wrote {text:?}").into()),
        Some(status) if !status.success() => Err(format!("{status}:\n{text}").into()),
        Some(_) => Ok(()),
    }
}

/// Runs a scenario, and checks that the device still works in this process.
fn run(context: &Context, scenario: &str) -> Outcome {
    let array = context.counting(&[1000])?;
    finish(command(context, scenario)?.spawn()?)?;
    assert_eq!((&array + &array)?.sum()?, 999_000);
    Ok(())
}

fn a_kernel_out_of_bounds_is_reported_and_recovered_from(context: &Context) -> Outcome {
    run(context, "fault out_of_bounds")
}

fn a_kernel_that_traps_is_reported_and_recovered_from(context: &Context) -> Outcome {
    run(context, "fault trap")
}

fn a_failed_assertion_is_reported_and_recovered_from(context: &Context) -> Outcome {
    run(context, "fault assertion")
}

fn a_misaligned_access_is_reported_and_recovered_from(context: &Context) -> Outcome {
    run(context, "fault misaligned")
}

fn a_fault_is_noticed_by_an_event(context: &Context) -> Outcome {
    run(context, "noticed event")
}

fn a_fault_is_noticed_by_a_download(context: &Context) -> Outcome {
    run(context, "noticed download")
}

fn a_fault_is_noticed_by_the_device(context: &Context) -> Outcome {
    run(context, "noticed device")
}

fn a_fault_is_noticed_by_a_drop(context: &Context) -> Outcome {
    run(context, "noticed drop")
}

fn a_fault_leaves_the_other_device_alone(context: &Context) -> Outcome {
    run(context, "fault beside")
}

fn a_process_exits_after_a_fault(context: &Context) -> Outcome {
    run(context, "fault exit")
}

fn a_process_exits_under_a_kernel_that_never_ends(context: &Context) -> Outcome {
    run(context, "exit forever")
}

fn a_process_exits_with_work_in_flight(context: &Context) -> Outcome {
    run(context, "exit return")?;
    run(context, "exit call")
}

fn a_process_exits_from_another_thread(context: &Context) -> Outcome {
    run(context, "exit thread")
}

fn a_process_that_panics_with_work_in_flight_ends(context: &Context) -> Outcome {
    let error = run(context, "exit panic").expect_err("a panic is no success").to_string();
    assert!(error.contains("101") && error.contains("on purpose"), "{error}");
    Ok(())
}

fn a_reset_takes_what_was_made_before(context: &Context) -> Outcome {
    run(context, "reset")
}

fn a_reset_ends_captures(context: &Context) -> Outcome {
    run(context, "reset capture")
}

fn a_reset_gives_back_all_memory(context: &Context) -> Outcome {
    run(context, "reset memory")
}

fn a_reset_leaves_the_other_device_alone(context: &Context) -> Outcome {
    run(context, "reset beside")
}

fn captures_resets_forks_and_drops_mix_on_threads(context: &Context) -> Outcome {
    run(context, "mixture")
}

fn a_forked_child_is_told_and_harms_nobody(context: &Context) -> Outcome {
    run(context, "fork")
}

fn a_forked_child_exits_with_exit_handlers(context: &Context) -> Outcome {
    run(context, "fork exit")
}

fn a_child_forked_before_first_use_works(context: &Context) -> Outcome {
    run(context, "fork early")
}

/// Returns a handle as hexadecimal text.
fn hexadecimal(handle: &IpcHandle) -> String {
    handle.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn two_processes_share_memory(context: &Context) -> Outcome {
    let memory = DeviceMemory::plain(&context.device, 4000)?;
    let stream = context.device.default_stream();
    write(stream.as_ref(), memory.address(), &(0..1000).collect::<Vec<i32>>())?;
    let handle = hexadecimal(&context.device.export_memory(memory.address())?);
    for round in 0..2 {
        finish(command(context, "share memory")?.env(HANDLE_VARIABLE, &handle).spawn()?)?;
        let mut seen = vec![0i32; 1000];
        read(stream.as_ref(), memory.address(), &mut seen)?;
        let expected: Vec<i32> = (0..1000).map(|it| it + 100 * (round + 1)).collect();
        assert_eq!(seen, expected, "the other process has added to each");
    }
    Ok(())
}

fn two_processes_share_an_event(context: &Context) -> Outcome {
    let options = EventOptions::ORDERING.interprocess(true);
    let event = context.device.create_event(options)?;
    let handle = hexadecimal(&context.device.export_event(event.as_ref())?);
    let stream = context.stream()?;
    let gate = Gate::on(stream.as_ref())?;
    stream.record(event.as_ref())?;
    let mut child = command(context, "share event")?.env(HANDLE_VARIABLE, handle).spawn()?;
    // The child prints a line just before it waits.
    let mut line = String::new();
    let stdout = child.stdout.take().expect("stdout is a pipe");
    BufReader::new(stdout).read_line(&mut line)?;
    gate.open();
    assert_eq!(line, "waiting\n");
    finish(child)
}

fn odd(context: &Context, scenario: &str, variable: &str, value: &str) -> Outcome {
    finish(command(context, scenario)?.env(variable, value).spawn()?)
}

fn queries_that_never_say_yes_are_not_waited_for(context: &Context) -> Outcome {
    odd(context, "odd queries", "DOUBLE_NOT_READY", "1")
}

fn an_architecture_without_a_name_is_told(context: &Context) -> Outcome {
    // CUDA's drivers return architectures as numbers, which always have a name.
    if context.backend.name() != "hip" {
        return Ok(());
    }
    odd(context, "odd architecture", "DOUBLE_TARGET", "Radeon Graphics")
}

fn an_event_that_was_never_recorded_is_complete(context: &Context) -> Outcome {
    odd(context, "odd unrecorded", "DOUBLE_NOT_READY", "2")
}

fn a_device_without_cooperative_launches_says_so(context: &Context) -> Outcome {
    odd(context, "odd cooperative", "DOUBLE_COOPERATIVE", "0")
}

fn without_a_library_the_reason_is_given(context: &Context) -> Outcome {
    let mut command = command(context, "no library")?;
    for variable in ["PYGPU_CUDA_LIBRARY", "PYGPU_HIP_LIBRARY"] {
        command.env(variable, "/nonexistent/driver.so");
    }
    finish(command.spawn()?)
}

fn without_a_compiler_the_remedy_is_given(context: &Context) -> Outcome {
    let folder = std::env::temp_dir().join(format!("gpuarray-empty-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let image = folder.join("image");
    std::fs::write(&image, context.device.compile(SOURCE, "programs.cu", &[])?.code)?;
    let mut command = command(context, "no compiler")?;
    command.env("PYGPU_CACHE_DIR", &folder).env(FILE_VARIABLE, &image);
    for variable in ["PYGPU_NVRTC", "PYGPU_HIPRTC", "CXX"] {
        command.env(variable, "/nonexistent/compiler.so");
    }
    let result = finish(command.spawn()?);
    std::fs::remove_dir_all(&folder)?;
    result?;
    let array = DeviceArray::<i32>::ones(&context.device, &[4])?;
    assert!(context.can(Feature::Kernels) && array.sum()? == 4);
    Ok(())
}
