#include "work.hpp"
#include "capture.hpp"

#include <algorithm>
#include <deque>

namespace core {
namespace {

using Clock = std::chrono::steady_clock;

// Stream hardware accepts about this many launches before a call waits.
constexpr size_t MOST_QUEUED = 1024;

void finish(const Ref<Work>& work) {
    const Ref<Work> keep = work; // the list may hold the last reference
    keep->state = Work::Done;
    keep->finished = Clock::now();
    keep->after.clear();
    const Operation operation = std::move(keep->operation);
    keep->operation = {};
    if (keep->stream) --keep->stream->queued;
    keep->stream = nullptr;
    keep->context->pending.erase(keep->pending);
    state().changed.notify_all();
}

// Host functions run without the lock on a separate thread, because they may wait for locks of
// other threads. That thread also starts host functions that no call has waited for after a while,
// so that their effects appear without a driver call.
class HostFunctions {
public:
    static HostFunctions& instance() {
        static HostFunctions* it = new HostFunctions;
        return *it;
    }

    void start(const Ref<Work>& work) {
        work->state = Work::Running;
        if (on_thread) {
            call(work, *thread().lock);
        } else {
            ready.push_back(work);
            wake();
        }
    }

    // Waits until the running host function has returned.
    void wait() {
        if (on_thread && !ready.empty()) {
            call_next(*thread().lock);
        } else {
            state().changed.wait(*thread().lock);
        }
    }

    void queued(const Ref<Work>& work) {
        waiting.push_back(work);
        wake();
    }

private:
    std::deque<Ref<Work>> ready, waiting;
    std::condition_variable wakened;
    bool started = false;
    static thread_local bool on_thread;

    void wake() {
        if (!started) {
            started = true;
            std::thread([this] { loop(); }).detach();
        }
        wakened.notify_one();
    }

    Ref<Work> call_next(std::unique_lock<std::mutex>& lock) {
        const Ref<Work> work = ready.front();
        ready.pop_front();
        call(work, lock);
        return work;
    }

    void call(const Ref<Work>& work, std::unique_lock<std::mutex>& lock) {
        const int failure = state().devices[size_t(work->context->device)].failure;
        const auto function = work->operation.host;
        thread().host_function = true;
        thread().contexts = {work->context};
        lock.unlock();
        function(failure);
        lock.lock();
        thread().host_function = false;
        thread().contexts.clear();
        finish(work);
    }

    void loop() {
        on_thread = true;
        std::unique_lock<std::mutex> lock(state().mutex);
        thread().lock = &lock;
        const auto patience = std::chrono::milliseconds(setting("DOUBLE_PROGRESS_MS", 100));
        for (;;) {
            while (!waiting.empty() && waiting.front()->state != Work::Queued) waiting.pop_front();
            if (!ready.empty()) {
                const Ref<Work> work = call_next(lock);
                if (state().eager) {
                    while (!work->context->pending.empty() && ready.empty()) {
                        if (!step(work->context->pending.front())) break;
                    }
                }
            } else if (waiting.empty() || patience.count() == 0) {
                wakened.wait(lock);
            } else {
                const Ref<Work> work = waiting.front();
                const auto due = work->queued + patience;
                if (Clock::now() >= due) {
                    run(work);
                } else {
                    wakened.wait_until(lock, due);
                }
            }
        }
    }
};
thread_local bool HostFunctions::on_thread = false;

// Runs work whose predecessors are all done.
void execute(const Ref<Work>& work) {
    Device& device = state().devices[size_t(work->context->device)];
    if (work->operation.host) {
        if (device.failure && !work->operation.host_after_failure) {
            finish(work);
        } else {
            HostFunctions::instance().start(work);
        }
        return;
    }
    if (!device.failure && work->operation.action) device.failure = work->operation.action();
    finish(work);
}

// Returns work on the path to the given one that can run or is running; null if the given one is
// done.
Ref<Work> next_on_the_way(Ref<Work> work) {
    if (work->state == Work::Done) return nullptr;
    for (;;) {
        if (work->state == Work::Running) return work;
        const auto found = std::find_if(work->after.begin(), work->after.end(), [](const auto& it) {
            return it->state != Work::Done;
        });
        if (found == work->after.end()) return work;
        work = *found;
    }
}

} // namespace

void run(Ref<Work> work) {
    // Goes through the predecessors without recursion, because queues are long.
    std::vector<Ref<Work>> path = {std::move(work)};
    while (!path.empty()) {
        const Ref<Work> top = path.back();
        if (top->state == Work::Done) {
            path.pop_back();
        } else if (top->state == Work::Running) {
            HostFunctions::instance().wait();
        } else {
            const Ref<Work>* missing = nullptr;
            for (const Ref<Work>& it : top->after) {
                if (it->state != Work::Done) missing = &it;
            }
            if (missing) {
                path.push_back(*missing);
            } else {
                execute(top);
            }
        }
    }
}

bool step(Ref<Work> work) {
    const Ref<Work> next = next_on_the_way(work);
    if (!next) return true;
    if (next->state == Work::Queued) execute(next);
    return work->state == Work::Done;
}

void run_unless_host(Ref<Work> work) {
    for (;;) {
        const Ref<Work> next = next_on_the_way(work);
        if (!next || next->operation.host) return;
        step(next);
    }
}

void drain(const Ref<Context>& context) {
    // Without a required order the newest work runs first, so that a missing order shows.
    while (!context->pending.empty()) run(context->pending.back());
}

Ref<Work> enqueue(const Ref<Context>& context, const Ref<Stream>& stream, Operation operation,
                  std::vector<Ref<Work>> after) {
    auto work = std::make_shared<Work>();
    const bool host = bool(operation.host);
    work->operation = std::move(operation);
    work->after = std::move(after);
    work->context = context;
    work->stream = stream;
    work->queued = Clock::now();
    work->pending = context->pending.insert(context->pending.end(), work);
    if (stream) {
        ++stream->queued;
        stream->tail = work;
    }
    if (host) HostFunctions::instance().queued(work);
    if (state().eager) {
        while (work->state == Work::Queued && next_on_the_way(work)->state == Work::Queued) {
            step(work);
        }
    }
    return work;
}

std::vector<Ref<Work>> before(const Ref<Stream>& stream) {
    std::vector<Ref<Work>> after;
    const auto add = [&](const Ref<Stream>& other) {
        if (other->tail && other->tail->state == Work::Done) other->tail = nullptr;
        if (other->tail) after.push_back(other->tail);
    };
    Context& context = *stream->context;
    add(stream);
    if (stream->legacy) {
        for (const Ref<Stream>& other : context.streams) {
            if (other->blocking()) add(other);
        }
    } else if (stream->blocking()) {
        add(context.legacy);
    }
    return after;
}

int submit(const Ref<Stream>& stream, Operation operation, const Ref<Work>& behind,
           Ref<Work>* queued) {
    const int status = check_capture(stream);
    if (status != 0) return status;
    if (stream->capture) {
        Node node;
        node.operation = std::move(operation);
        capture_node(*stream, std::move(node));
        return 0;
    }
    if (stream->queued >= MOST_QUEUED) run_unless_host(stream->tail);
    std::vector<Ref<Work>> after = before(stream);
    if (behind && behind->state != Work::Done) after.push_back(behind);
    const Ref<Work> work = enqueue(stream->context, stream, std::move(operation), after);
    if (queued) *queued = work;
    return 0;
}

int wait_for(const Ref<Stream>& stream) {
    std::vector<Ref<Work>> all;
    if (stream->legacy) {
        all = before(stream);
    } else if (stream->tail) {
        all = {stream->tail};
    }
    for (size_t i = all.size(); i-- > 0;) run(all[i]);
    return state().devices[size_t(stream->context->device)].failure;
}

Ref<Stream> new_stream(const Ref<Context>& context, unsigned flags, int priority) {
    auto stream = std::make_shared<Stream>();
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    auto& all = context->streams;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const Ref<Stream>& it) {
                                 return it->destroyed &&
                                        (!it->tail || it->tail->state == Work::Done);
                             }),
              all.end());
    all.push_back(stream);
    return stream;
}

int find_stream(Handle handle, Ref<Stream>& stream) {
    if (handle <= 2) {
        const Ref<Context> context = current_context();
        const int status = usable(context);
        if (status != 0) return status;
        if (handle <= 1) {
            stream = context->legacy;
        } else {
            Ref<Stream>& own = context->per_thread[std::this_thread::get_id()];
            if (!own) {
                own = new_stream(context, 0, 0);
                own->handle = 2;
            }
            stream = own;
        }
        return 0;
    }
    stream = state().streams.find(handle);
    if (!stream) return INVALID_HANDLE;
    return usable(stream->context);
}

} // namespace core
