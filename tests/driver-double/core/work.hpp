// The work of streams: queued together with its predecessors, and run when a call waits for it.
#pragma once

#include "state.hpp"

namespace core {

// Finds the stream of a handle; for 0 to 2, a stream of the current context.
int find_stream(Handle handle, Ref<Stream>& stream);

// Queues an operation after the stream's work and after `behind`, or adds it to the graph that the
// stream captures.
int submit(const Ref<Stream>& stream, Operation operation, const Ref<Work>& behind = nullptr,
           Ref<Work>* queued = nullptr);

// Queues an operation after the given work only.
Ref<Work> enqueue(const Ref<Context>& context, const Ref<Stream>& stream, Operation operation,
                  std::vector<Ref<Work>> after);

// Returns the work that new work of the stream must wait for.
std::vector<Ref<Work>> before(const Ref<Stream>& stream);

// Runs work and everything that it waits for.
void run(Ref<Work> work);

// Runs at most one operation on the path to the work; returns true if the work is done.
bool step(Ref<Work> work);

// Runs operations on the path to the work, but no host function, which may need locks of the
// caller.
void run_unless_host(Ref<Work> work);

// Runs all work of a context, the newest first.
void drain(const Ref<Context>& context);

// Runs the work queued on a stream, and on the streams that the legacy stream waits for. Returns
// the device's status.
int wait_for(const Ref<Stream>& stream);

// Creates a stream in a context.
Ref<Stream> new_stream(const Ref<Context>& context, unsigned flags, int priority);

} // namespace core
