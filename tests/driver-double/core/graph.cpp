// Graphs: captured operations that each launch queues again.
#include "capture.hpp"
#include "functions.hpp"
#include "memory.hpp"
#include "pool.hpp"
#include "work.hpp"

namespace core {
namespace {

// Memory that the graph allocates without freeing must have been freed since the last launch.
int back_memory(const Graph& graph) {
    std::vector<Ref<Memory>> taken;
    for (const Node& node : graph.nodes) {
        if (!node.allocates) continue;
        bool freed = false;
        for (const Node& other : graph.nodes) freed |= other.frees == node.allocates;
        if (freed) continue;
        if (node.allocates->freeing) {
            const std::vector<Ref<Work>> all(graph.context->pending.begin(),
                                             graph.context->pending.end());
            for (const Ref<Work>& work : all) run_unless_host(work);
        }
        if (const int status = launch_allocation(node.allocates)) {
            for (const Ref<Memory>& memory : taken) release(memory);
            return status;
        }
        taken.push_back(node.allocates);
    }
    return 0;
}

} // namespace
} // namespace core

namespace driver {
using namespace core;

int cuGraphInstantiateWithFlags(Handle* exec, Handle handle, unsigned long long flags) {
    const Ref<Graph> graph = state().graphs.find(handle);
    if (!exec || !graph || flags > 15) return INVALID_VALUE;
    *exec = state().execs.add(graph);
    return 0;
}

int cuGraphLaunch(Handle handle, Handle stream_handle) {
    const Ref<Graph> graph = state().execs.find(handle);
    if (!graph) return INVALID_VALUE;
    Ref<Stream> stream;
    if (const int status = find_stream(stream_handle, stream)) return status;
    if (const int status = check_capture(stream)) return status;
    if (stream->capture) return refuse_if_captured(stream);
    if (const int status = back_memory(*graph)) return status;
    Ref<Work> begin;
    if (const int status = submit(stream, {}, nullptr, &begin)) return status;
    std::vector<Ref<Work>> all = {begin};
    for (const Node& node : graph->nodes) {
        std::vector<Ref<Work>> after = {begin};
        for (int other : node.after) after.push_back(all[size_t(other) + 1]);
        all.push_back(enqueue(graph->context, nullptr, node.operation, std::move(after)));
    }
    enqueue(stream->context, stream, {}, std::move(all));
    return 0;
}

int cuUserObjectCreate(Handle* object, void* data, CUhostFn destroy, unsigned references,
                       unsigned flags) {
    if (!object || !destroy || references == 0 || flags != 1) return INVALID_VALUE;
    // Constructed in place: the destructor of a temporary would call the function.
    *object = state().user_objects.add(Ref<UserObject>(new UserObject{destroy, data, references}));
    return 0;
}

int cuUserObjectRelease(Handle handle, unsigned count) {
    const Ref<UserObject> object = state().user_objects.find(handle);
    if (!object || count == 0 || count > object->references) return INVALID_VALUE;
    object->references -= count;
    if (object->references == 0) state().user_objects.erase(handle);
    return 0;
}

// A graph counts several references as one, so this releases all of them together.
int cuGraphRetainUserObject(Handle graph_handle, Handle handle, unsigned count, unsigned flags) {
    const Ref<Graph> graph = state().graphs.find(graph_handle);
    const Ref<UserObject> object = state().user_objects.find(handle);
    if (!graph || !object || count == 0 || flags > 1) return INVALID_VALUE;
    if (flags == 1 && count > object->references) return INVALID_VALUE;
    graph->objects.push_back(object);
    return flags == 1 ? cuUserObjectRelease(handle, count) : 0;
}

int cuGraphDestroy(Handle handle) {
    return state().graphs.erase(handle) ? 0 : int(INVALID_VALUE);
}

int cuGraphExecDestroy(Handle handle) {
    return state().execs.erase(handle) ? 0 : int(INVALID_VALUE);
}

int cuGraphGetNodes(Handle handle, Handle* nodes, size_t* count) {
    const Ref<Graph> graph = state().graphs.find(handle);
    if (!graph || !count) return INVALID_VALUE;
    const size_t room = *count, all = graph->nodes.size();
    if (!nodes) {
        *count = all;
        return 0;
    }
    for (size_t i = 0; i < room; ++i) nodes[i] = i < all ? handle + ((i + 1) << 48) : 0;
    *count = std::min(room, all);
    return 0;
}

} // namespace driver
