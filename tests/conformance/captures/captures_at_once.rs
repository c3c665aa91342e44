//! Captures that are active at the same time, and the memory that they share.

use crate::captures::failed_captures::check_usable;
use crate::captures::graphs::{numbers, replay};
use crate::context::{Context, Gate, error_of, expect_error};
use crate::harness::{Outcome, tests};
use gpuarray::array::functions;
use gpuarray::{CaptureMode, DeviceArray, ErrorKind, Result, Stream};
use hal::memory::TextureArray;
use hal::texture::{ArrayShape, ChannelFormat, TexelFormat};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

tests![
    captures_at_once_read_what_one_of_their_streams_wrote needs [Graphs],
    a_capture_writes_what_another_captures_stream_used_before needs [Graphs],
    what_no_capture_uses_is_dropped_beside_two needs [Graphs],
    captures_at_once_write_nothing_in_common needs [Graphs],
    a_texture_goes_behind_other_work_beside_a_capture needs [Graphs, Textures],
];

/// Two streams that capture for different parts of a program, and an array that the first stream wrote and
/// the second one read.
struct Two {
    streams: [Arc<dyn Stream>; 2],
    common: DeviceArray<i32>,
    own: [DeviceArray<i32>; 2],
}

impl Two {
    fn new(context: &Context) -> Result<Two> {
        let streams = [context.stream()?, context.stream()?];
        let common = numbers(context, &streams[0], 50)?;
        let mut own = [numbers(context, &streams[0], 50)?, numbers(context, &streams[1], 50)?];
        own[1].assign(&common.on(&streams[1])?)?;
        streams[1].synchronize()?;
        Ok(Two { streams, common, own })
    }

    fn begin(&self) -> Result<()> {
        self.streams.iter().try_for_each(|it| it.begin_capture(CaptureMode::Relaxed))
    }
}

fn captures_at_once_read_what_one_of_their_streams_wrote(context: &Context) -> Outcome {
    let mut two = Two::new(context)?;
    two.begin()?;
    for (own, stream) in two.own.iter_mut().zip(&two.streams) {
        own.update(functions::Add, &two.common.on(stream)?)?;
    }
    let graphs = [two.streams[0].end_capture()?, two.streams[1].end_capture()?];
    for (graph, stream) in graphs.iter().zip(&two.streams) {
        replay(graph, stream)?;
        replay(graph, stream)?;
    }
    for own in &two.own {
        assert_eq!(own.to_vec()?[7], 3 * 7);
    }
    Ok(())
}

fn a_capture_writes_what_another_captures_stream_used_before(context: &Context) -> Outcome {
    for writer in [0, 1] {
        let mut two = Two::new(context)?;
        two.begin()?;
        two.common.on(&two.streams[writer])?.update_scalar(functions::Add, 1)?;
        two.own[1 - writer].update_scalar(functions::Add, 1)?;
        let graphs = [two.streams[0].end_capture()?, two.streams[1].end_capture()?];
        graphs.iter().zip(&two.streams).try_for_each(|(it, stream)| replay(it, stream))?;
        assert_eq!((two.common.to_vec()?[7], two.own[1 - writer].to_vec()?[7]), (8, 8));
    }
    Ok(())
}

fn what_no_capture_uses_is_dropped_beside_two(context: &Context) -> Outcome {
    for releases in [false, true] {
        let Two { streams, common, mut own } = Two::new(context)?;
        streams.iter().try_for_each(|it| it.begin_capture(CaptureMode::Relaxed))?;
        if releases {
            common.untyped().memory().release()?;
        }
        drop(common);
        for own in &mut own {
            own.update_scalar(functions::Add, 1)?;
        }
        for (own, stream) in own.iter().zip(&streams) {
            replay(&stream.end_capture()?, stream)?;
            assert_eq!(own.to_vec()?[7], 8);
        }
    }
    Ok(())
}

fn captures_at_once_write_nothing_in_common(context: &Context) -> Outcome {
    // For each stream, whether it writes.
    for writes in [[true, false], [false, true], [true, true]] {
        let two = Two::new(context)?;
        two.begin()?;
        let uses = |number: usize| -> Result<()> {
            let mut common = two.common.on(&two.streams[number])?;
            match writes[number] {
                true => common.update_scalar(functions::Add, 1),
                false => (&common + 1).map(drop),
            }
        };
        uses(0)?;
        assert_eq!(error_of(uses(1)).kind(), ErrorKind::InvalidArgument);
        for stream in &two.streams {
            expect_error(stream.end_capture(), ErrorKind::InvalidArgument, &["captur"])?;
            check_usable(context, stream)?;
        }
        assert_eq!(two.common.to_vec()?[7], 7, "nothing has run");
    }
    Ok(())
}

fn a_texture_goes_behind_other_work_beside_a_capture(context: &Context) -> Outcome {
    let [stream, other] = [context.stream()?, context.stream()?];
    let x = numbers(context, &stream, 9)?;
    let format = TexelFormat::new(ChannelFormat::Float, 1)?;
    let shape = ArrayShape::new(5, 0, 0, format);
    let texels = TextureArray::new(&context.device, shape)?;
    let gate = Gate::on(other.as_ref())?;
    stream.begin_capture(CaptureMode::Relaxed)?;
    let has_opened = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| {
            drop(texels);
            has_opened.load(Ordering::Acquire)
        });
        // The other stream's work could read the texels until the gate opens.
        std::thread::sleep(Duration::from_millis(2));
        has_opened.store(true, Ordering::Release);
        gate.open();
        assert!(dropping.join().expect("no panic"), "the array went while work was queued");
    });
    (&x + 1)?;
    assert_eq!(stream.end_capture()?.node_count(), 1);
    Ok(())
}
