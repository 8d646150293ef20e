// A snapshot of live sequences as named numpy arrays, and back.
#pragma once

#include <algorithm>
#include <vector>

#include "arrays.hpp"
#include "drhmm/stream/snapshot.hpp"

namespace drhmm::bindings {

using Flags = py::array_t<bool, py::array::c_style>;

// Calls use(name, values, shape) for every array of a snapshot.
template <class State, class Use>
void for_each_array(State& state, const Use& use) {
  const Index n = state.n_rows, kept = state.kept;
  use("live", state.live, std::vector<Index>{n});
  use("n_frames", state.n_frames, std::vector<Index>{n});
  use("wide", state.wide, std::vector<Index>{n});
  use("n_past", state.n_past, std::vector<Index>{n});
  use("past", state.past, std::vector<Index>{n, state.past_size});
  use("mantissa", state.mantissa, std::vector<Index>{n, kept, state.n_states});
  use("exponent", state.exponent, std::vector<Index>{n, kept, state.n_states});
  use("evidence", state.evidence, std::vector<Index>{n, kept, state.n_columns});
  use("dt", state.dt, std::vector<Index>{n, kept});
  use("n_context", state.n_context, std::vector<Index>{n});
  use("context", state.context, std::vector<Index>{n, state.context_size});
  use("last", state.last, std::vector<Index>{n, state.last_size});
  const Index watched = state.n_watched, highest = AlarmEpisode::kWitnesses;
  use("sums", state.sums, std::vector<Index>{watched});
  use("watch_counts", state.watch_counts, std::vector<Index>{watched, Snapshot::kWatchCounts});
  use("witness_places", state.witness_places, std::vector<Index>{watched, highest});
  use("witness_scores", state.witness_scores, std::vector<Index>{watched, highest});
  use("witnesses", state.witnesses, std::vector<Index>{watched, highest * state.frame_size});
}

// Flags are bytes in a snapshot.
template <class Value>
using NumpyValue = std::conditional_t<std::is_same_v<Value, char>, bool, Value>;

inline py::dict to_arrays(const Snapshot& state) {
  py::dict arrays;
  for_each_array(state, [&](const char* name, const auto& values, const std::vector<Index>& shape) {
    using Value = NumpyValue<std::decay_t<decltype(values[0])>>;
    py::array_t<Value, py::array::c_style> array(shape);
    std::transform(values.begin(), values.end(), array.mutable_data(), [](auto value) { return Value(value); });
    arrays[name] = array;
  });
  return arrays;
}

inline Snapshot to_snapshot(const Streams& empty, const py::dict& arrays) {
  require(arrays.contains("live"), "a snapshot has the array live");
  Snapshot state(empty, py::len(arrays["live"]));
  for_each_array(state, [&](const char* name, auto& values, const std::vector<Index>& shape) {
    using Named = py::array_t<NumpyValue<std::decay_t<decltype(values[0])>>, py::array::c_style>;
    require(arrays.contains(name) && py::isinstance<Named>(arrays[name]),
            "the arrays of a snapshot do not fit the model");
    const auto array = arrays[name].template cast<Named>();
    require(std::vector<Index>(array.shape(), array.shape() + array.ndim()) == shape,
            "the arrays of a snapshot do not fit the model");
    require_aligned(array, "the state");
    std::copy_n(array.data(), array.size(), values.begin());
  });
  return state;
}

}  // namespace drhmm::bindings
