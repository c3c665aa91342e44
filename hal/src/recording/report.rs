//! A finished recording: its rows, and their table, timeline and page.

use super::clock::Timeline;
use super::state::{Entry, More, State};
use super::work::Kind;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::EventOptions;
use crate::module::LaunchConfig;
use crate::properties::DeviceId;
use crate::stream::{Direction, StreamOptions, Transfer};
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// A recorded call. Times are in seconds since the recording began.
///
/// The call that took the device most time:
///
/// ```
/// use gpuarray::DeviceArray;
/// use gpuarray::recording::Session;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let session = Session::begin();
/// let total = DeviceArray::<f32>::ones(&device, &[100_000])?.sum()?;
/// let rows = session.finish().rows;
/// let slowest = rows.iter().max_by(|a, b| a.time().total_cmp(&b.time())).expect("there are calls");
/// println!("{} moved {} bytes in {} s", slowest.name, slowest.bytes, slowest.time());
/// # assert_eq!(total, 1e5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row {
    /// What the call did.
    pub kind: Kind,
    /// The name of the kernel, of the operation with its dtype, or of the call.
    pub name: String,
    /// The line of the program that caused it, as `file:number`; empty if unknown.
    pub line: Arc<str>,
    /// The bytes that the work reads and writes: for an operation or a copy each element once, for a kernel all
    /// arrays that it takes. For an allocation its bytes.
    pub bytes: u64,
    /// The launch configuration of a kernel.
    pub launch: Option<LaunchConfig>,
    /// The device; `None` for calls that concern none.
    pub device: Option<DeviceId>,
    /// The number of the stream; 0 for calls without one.
    pub stream: u64,
    /// The number of the calling thread, counted from 1.
    pub thread: u64,
    /// The beginning of the call on the host.
    pub start: f64,
    /// The time that the call took on the host.
    pub seconds: f64,
    /// The beginning of the work on the device; `None` without device times.
    pub device_start: Option<f64>,
    /// The time that the work took on the device; `None` without device times.
    pub device_seconds: Option<f64>,
    /// For allocations and frees, the bytes allocated since the recorder began minus the bytes freed.
    pub in_use: Option<i64>,
}

impl Row {
    /// Returns how long the work took on the device, in seconds; without device times, how long the call took on the
    /// host.
    pub fn time(&self) -> f64 {
        self.device_seconds.unwrap_or(self.seconds)
    }

    /// Returns true if the bytes are moved inside the device.
    fn is_on_device(&self) -> bool {
        matches!(self.kind, Kind::Kernel | Kind::Operation | Kind::Fill)
            || self.name == "device to device"
    }
}

/// The order of a table's lines.
///
/// The order that a user names:
///
/// ```
/// use gpuarray::recording::Sort;
///
/// # fn main() -> gpuarray::Result<()> {
/// assert_eq!("bytes".parse::<Sort>()?, Sort::Bytes);
/// assert!("colour".parse::<Sort>().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sort {
    /// The longest time first.
    #[default]
    Time,
    /// The most bytes first.
    Bytes,
    /// The most calls first.
    Count,
    /// The highest bandwidth first.
    Bandwidth,
}

impl FromStr for Sort {
    type Err = Error;

    fn from_str(text: &str) -> Result<Sort> {
        match text {
            "time" => Ok(Sort::Time),
            "bytes" => Ok(Sort::Bytes),
            "count" => Ok(Sort::Count),
            "bandwidth" => Ok(Sort::Bandwidth),
            _ => Err(Error::invalid(
                "table",
                format!("sort is {text:?}; allowed are time, bytes, count and bandwidth"),
            )),
        }
    }
}

/// What a [`Session`](super::Session) recorded.
///
/// A table that compares with the device's own copies, and a page for a browser:
///
/// ```
/// use gpuarray::DeviceArray;
/// use gpuarray::recording::{Session, Sort, copy_rate};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let session = Session::begin();
/// let total = DeviceArray::<f32>::ones(&device, &[100_000])?.sum()?;
/// let mut recording = session.finish();
/// recording.describe(device.as_ref(), Some(copy_rate(device.as_ref())?));
/// assert!(recording.table(Sort::Bandwidth).contains("sum float32"));
/// let page = recording.page("sum");
/// assert!(page.starts_with("<!doctype html>"));
/// # assert_eq!(total, 1e5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recording {
    /// The calls, in the order in which they returned.
    pub rows: Vec<Row>,
    /// The number of earlier calls that were not kept.
    pub dropped: u64,
    /// The seconds from the beginning to the end.
    pub seconds: f64,
    /// The name of each device, and the bytes per second that its own copies move, if measured by [`copy_rate`].
    pub devices: Vec<(DeviceId, String, Option<f64>)>,
}

/// The calls of one kind and name.
#[derive(Default)]
struct Group {
    calls: u64,
    time: f64,
    host: f64,
    bytes: u64,
    /// Bytes and seconds of the calls with device times.
    timed: (u64, f64),
    on_device: Option<DeviceId>,
    lines: HashMap<Arc<str>, f64>,
}

impl Group {
    fn rate(&self) -> Option<f64> {
        (self.timed.0 > 0 && self.timed.1 > 0.0).then(|| self.timed.0 as f64 / self.timed.1)
    }

    /// Returns the line with the most time, and the number of others.
    fn line(&self) -> String {
        let most = self.lines.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
        let more = match self.lines.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        most.map_or_else(String::new, |(line, _)| format!("{line}{more}"))
    }
}

const COLUMNS: [&str; 10] =
    ["kind", "name", "calls", "time ms", "mean us", "host ms", "MB", "GB/s", "of limit", "line"];

impl Recording {
    /// Returns the calls of some entries.
    pub(super) fn of(state: &State, numbers: Range<u64>, (begin, end): (u64, u64)) -> Recording {
        let mut timeline = Timeline::of(state.entries.iter().filter_map(Entry::call));
        let seconds = |time: i64| (time - begin as i64) as f64 * 1e-9;
        // The end of each stream's last work, as rounded.
        let mut ends: HashMap<u64, f64> = HashMap::new();
        let mut row = |(entry, work): (&Entry, Option<(i64, i64)>)| {
            let work = work.map(|(start, length)| {
                let end = ends.entry(entry.stream).or_insert(f64::MIN);
                let (start, length) = (seconds(start).max(*end), length as f64 * 1e-9);
                *end = start + length;
                (start, length)
            });
            let name = state.text(entry.name);
            let in_use = if let More::InUse(bytes) = entry.more { Some(bytes) } else { None };
            Row {
                kind: entry.kind,
                name: entry.dtype.map_or(name.to_string(), |dtype| format!("{name} {dtype}")),
                line: state.text(entry.line),
                bytes: entry.bytes,
                launch: Some(entry.launch).filter(|it| it.block != [0; 3]),
                device: entry.device.map(|it| state.devices[it as usize].id),
                stream: entry.stream,
                thread: entry.thread.into(),
                start: seconds(entry.host.0 as i64),
                seconds: (entry.host.1 - entry.host.0) as f64 * 1e-9,
                device_start: work.map(|it| it.0),
                device_seconds: work.map(|it| it.1),
                in_use,
            }
        };
        // Calls of before the session end where its first ones begin.
        let placed = state.entries.iter().map(|it| (it, it.call().map(|it| timeline.place(it))));
        let first = state.next() - state.entries.len() as u64;
        let own = (first..).zip(placed).filter(|(number, _)| numbers.contains(number));
        let rows: Vec<_> = own.map(|(_, entry)| row(entry)).collect();
        Recording {
            dropped: numbers.end - numbers.start - rows.len() as u64,
            rows,
            seconds: seconds(end as i64),
            devices: Vec::new(),
        }
    }

    /// Adds the name of a device and the rate of its copies. The table compares bandwidths with this rate.
    pub fn describe(&mut self, device: &dyn Device, rate: Option<f64>) {
        self.devices.push((device.id(), device.properties().name.clone(), rate));
    }

    fn groups(&self, sort: Sort) -> Vec<((Kind, &str), Group)> {
        let mut groups: BTreeMap<(Kind, &str), Group> = BTreeMap::new();
        for row in &self.rows {
            let group = groups.entry((row.kind, &row.name)).or_default();
            group.calls += 1;
            group.time += row.time();
            group.host += row.seconds;
            group.bytes = group.bytes.saturating_add(row.bytes);
            if let Some(seconds) = row.device_seconds {
                group.timed = (group.timed.0.saturating_add(row.bytes), group.timed.1 + seconds);
            }
            group.on_device = row.device.filter(|_| row.is_on_device());
            if !row.line.is_empty() {
                *group.lines.entry(row.line.clone()).or_default() += row.time();
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        let weight = |group: &Group| match sort {
            Sort::Time => group.time,
            Sort::Bytes => group.bytes as f64,
            Sort::Count => group.calls as f64,
            Sort::Bandwidth => group.rate().unwrap_or(0.0),
        };
        groups.sort_by(|a, b| weight(&b.1).total_cmp(&weight(&a.1)));
        groups
    }

    /// Returns the cells of the table, a row for each kind and name.
    fn cells(&self, sort: Sort) -> Vec<[String; 10]> {
        let limit = |device| self.devices.iter().find(|it| it.0 == device).and_then(|it| it.2);
        let cells = |((kind, name), group): ((Kind, &str), Group)| {
            let rate = group.rate();
            let share = rate.zip(group.on_device.and_then(limit)).map(|(rate, of)| rate / of);
            [
                kind.name().into(),
                name.into(),
                group.calls.to_string(),
                format!("{:.3}", group.time * 1e3),
                format!("{:.1}", group.time * 1e6 / group.calls as f64),
                format!("{:.3}", group.host * 1e3),
                if group.bytes > 0 {
                    format!("{:.3}", group.bytes as f64 * 1e-6)
                } else {
                    String::new()
                },
                rate.map_or_else(String::new, |it| format!("{:.1}", it * 1e-9)),
                share.map_or_else(String::new, |it| format!("{:.0}%", it * 100.0)),
                group.line(),
            ]
        };
        self.groups(sort).into_iter().map(cells).collect()
    }

    /// Returns the sentences above the table.
    fn summary(&self) -> Vec<String> {
        let mut lines = vec![format!("{} calls in {:.3} ms", self.rows.len(), self.seconds * 1e3)];
        if self.dropped > 0 {
            lines.push(format!("{} earlier calls were not kept", self.dropped));
        }
        for (id, name, rate) in &self.devices {
            let rate = rate.map_or_else(String::new, |rate| {
                format!("; limit {:.1} GB/s, a copy inside the device, measured", rate * 1e-9)
            });
            lines.push(format!("{id} {name}{rate}"));
        }
        let in_use = self.rows.iter().filter_map(|row| row.in_use);
        if let Some(peak) = in_use.max() {
            lines.push(format!("at most {:.3} MB allocated", peak.max(0) as f64 * 1e-6));
        }
        lines
    }

    /// Returns the table as text.
    pub fn table(&self, sort: Sort) -> String {
        let rows: Vec<_> =
            std::iter::once(COLUMNS.map(String::from)).chain(self.cells(sort)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: [usize; 10] = std::array::from_fn(|column| width(column).unwrap_or(0));
        let mut text = self.summary().join("\n") + "\n";
        for row in &rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                let is_text = matches!(column, 0 | 1 | 9);
                let _ = match is_text {
                    true => write!(line, "{cell:width$}  "),
                    false => write!(line, "{cell:>width$}  "),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    /// Returns the timeline in Chrome's trace event format, for Perfetto and `chrome://tracing`: a track for each
    /// thread of the host and each stream of a device, and the allocated bytes.
    pub fn timeline(&self) -> String {
        let mut events = vec![named("process_name", 0, 0, "host")];
        let mut tracks = BTreeMap::new();
        let mut devices: Vec<DeviceId> = Vec::new();
        for row in &self.rows {
            let device = row.device.map(|device| {
                let known = devices.iter().position(|it| *it == device);
                known.unwrap_or_else(|| {
                    devices.push(device);
                    devices.len() - 1
                }) + 1
            });
            let launch = row.launch.map_or_else(String::new, |launch| {
                format!(
                    r#","grid":{:?},"block":{:?},"shared_bytes":{}"#,
                    launch.grid, launch.block, launch.shared_bytes
                )
            });
            let rest = format!(
                r#""name":{},"cat":"{}","args":{{"line":{},"bytes":{}{launch}}}"#,
                Json(&row.name),
                row.kind.name(),
                Json(&row.line),
                row.bytes
            );
            let event = |process: usize, track: u64, start: f64, seconds: f64| {
                format!(
                    r#"{{"ph":"X","pid":{process},"tid":{track},"ts":{:.3},"dur":{:.3},{rest}}}"#,
                    start * 1e6,
                    seconds * 1e6
                )
            };
            events.push(event(0, row.thread, row.start, row.seconds));
            tracks.insert((0, row.thread), format!("thread {}", row.thread));
            if let (Some(device), Some(start), Some(seconds)) =
                (device, row.device_start, row.device_seconds)
            {
                events.push(event(device, row.stream, start, seconds));
                tracks.insert((device, row.stream), format!("stream {}", row.stream));
            }
            if let (Some(device), Some(in_use)) = (device, row.in_use) {
                events.push(format!(
                    r#"{{"ph":"C","pid":{device},"tid":0,"ts":{:.3},"name":"allocated bytes","args":{{"bytes":{in_use}}}}}"#,
                    (row.start + row.seconds) * 1e6
                ));
            }
        }
        for (index, id) in devices.iter().enumerate() {
            let name = self.devices.iter().find(|it| it.0 == *id).map_or("", |it| &it.1);
            let name = format!("{id} {name}");
            events.push(named("process_name", index + 1, 0, name.trim_end()));
        }
        events.extend(
            tracks
                .iter()
                .map(|((process, track), name)| named("thread_name", *process, *track, name)),
        );
        format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
    }

    /// Returns a page in HTML that needs no other file: timeline, memory and table.
    pub fn page(&self, title: &str) -> String {
        // In a script, "</" could end it.
        let timeline = self.timeline().replace("</", "<\\/");
        include_str!("page.html")
            .replace("@TITLE@", &Html(title).to_string())
            .replace("@TABLE@", &self.html_table(Sort::Time))
            .replace("@TIMELINE@", &timeline)
    }

    /// Returns the table in HTML.
    pub fn html_table(&self, sort: Sort) -> String {
        let mut text = String::new();
        for line in self.summary() {
            let _ = writeln!(text, "<p>{}</p>", Html(&line));
        }
        text += "<table>\n<thead><tr>";
        for name in COLUMNS {
            let _ = write!(text, "<th>{name}</th>");
        }
        text += "</tr></thead>\n<tbody>\n";
        for row in self.cells(sort) {
            text += "<tr>";
            for cell in &row {
                let _ = write!(text, "<td>{}</td>", Html(cell));
            }
            text += "</tr>\n";
        }
        text + "</tbody>\n</table>\n"
    }
}

/// Returns the event that names a process or a thread of a timeline.
fn named(what: &str, process: usize, track: u64, name: &str) -> String {
    format!(
        r#"{{"ph":"M","pid":{process},"tid":{track},"name":"{what}","args":{{"name":{}}}}}"#,
        Json(name)
    )
}

/// A text as a string of JSON.
struct Json<'a>(&'a str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                control if control < ' ' => write!(f, "\\u{:04x}", control as u32)?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

/// A text in HTML.
struct Html<'a>(&'a str);

impl fmt::Display for Html<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// Returns the bytes per second that a copy inside the device reads and writes: the fastest of several copies of up to
/// 256 MiB, on a stream of its own. Waits for the copies.
///
/// # Errors
/// `OutOfMemory`; else the driver's.
pub fn copy_rate(device: &dyn Device) -> Result<f64> {
    const COPIES: usize = 8;
    let free = device.memory_info()?.free;
    let bytes = (free / 8).min(256 << 20) & !0xfff;
    let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
    let kept = device.kept_memory()?;
    let (source, destination) = (device.allocate(bytes)?, device.allocate(bytes));
    let measure = |destination: u64| {
        let copy = Transfer::linear(Direction::DeviceToDevice, destination, source, bytes, false);
        // SAFETY: both addresses are allocations of this size, which only this stream uses.
        unsafe { stream.fill(source, 1, 1, bytes)? };
        let mut fastest = f32::MAX;
        for _ in 0..COPIES {
            let (start, end) = (
                stream.create_event(EventOptions::default())?,
                stream.create_event(EventOptions::default())?,
            );
            stream.record(start.as_ref())?;
            // SAFETY: as above.
            unsafe { stream.transfer(&copy)? };
            stream.record(end.as_ref())?;
            end.synchronize()?;
            fastest = fastest.min(end.elapsed_since(start.as_ref())?);
        }
        Ok(2.0 * bytes as f64 / (f64::from(fastest.max(1e-6)) * 1e-3))
    };
    let rate = destination.clone().and_then(measure);
    for address in [Some(source), destination.ok()].into_iter().flatten() {
        // SAFETY: each is freed once, after the copies have been waited for.
        unsafe { device.free(address, bytes)? };
    }
    if device.kept_memory()? > kept {
        device.trim_memory(kept.max(1))?;
    }
    rate
}
