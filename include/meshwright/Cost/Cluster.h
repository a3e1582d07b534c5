//===- Cluster.h - devices, and the links between them ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A cluster is a list of device types and levels of links, innermost first: eight devices of a
// machine, so many machines. docs/clusters.md describes the files that clusters are read from.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_CLUSTER_H
#define MESHWRIGHT_COST_CLUSTER_H

#include "meshwright/Cost/Device.h"
#include "meshwright/Cost/Torus.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <vector>

namespace meshwright::cost {

/// How long a collective takes by one algorithm and protocol of the communication library: a time
/// for its call, one for each of its steps, and one for the bytes that a member sends.
struct CollectiveAlgorithm {
  enum class Pattern {
    ring,  ///< as many steps as members send to their neighbours
    tree,  ///< two for each doubling of the units, up and down
    direct ///< one to each other unit
  };
  std::string name;
  std::vector<std::string> collectives; ///< as the ops are called
  Pattern pattern = Pattern::ring;
  double base = 0, step = 0; ///< seconds
  Rate bandwidth{0};         ///< bytes a second through an adapter, by the number of members

  /// The collectives that algorithms may be of; others are messages.
  static llvm::ArrayRef<llvm::StringRef> known();
};

/// Links between units: devices of a machine, machines of a cluster. Each device has an adapter.
struct Level {
  std::string name;
  int64_t count = 0; ///< units of the level inside that it connects; of the outermost 0: any number
  Link link{0, 0};   ///< of a message from a device to a device of another unit
  std::vector<CollectiveAlgorithm> algorithms;
  /// By which share of its time a collective holds up what is computed beside it: 1 where the
  /// processor that computes also moves the bytes.
  double contention = 0;
  /// Of the innermost level: its devices are linked to their neighbours in both directions of each dimension; else
  /// each to all others.
  std::optional<Torus> torus = {};

  /// Bytes a second that a device sends at most, by messages or a collective's algorithm.
  double mostBandwidth() const;
};

/// How the members of a group lie in a cluster. Groups of one kind lie alike.
struct GroupLayout {
  int64_t members = 1;
  /// Of each level, from the innermost: how many of its units hold members, of one unit of the next
  /// level; 1 where a unit holds them all.
  llvm::SmallVector<int64_t> units;
  /// The outermost level that messages within the group use.
  size_t level = 0;
  /// Members in one unit of that level.
  int64_t membersPerUnit = 1;
  /// In a torus, by dimension. Nothing where they are not all devices at certain coordinates.
  std::optional<llvm::SmallVector<TorusExtent>> box = {};
};

/// How messages that are sent at once get to their receivers: the slowest of them.
struct MessageWay {
  size_t level = 0;
  Link link{0, 0}; ///< of a message on its own
  /// Links that it passes one after the other, and messages that share one of them.
  int64_t hops = 1, sharing = 1;

  double seconds(double bytes) const { return link.seconds(double(sharing) * bytes, double(hops)); }
};

class Cluster {
public:
  std::string name, description;
  std::string target; ///< the platform that programs for its devices are compiled for
  /// Devices in the order of their numbers, and how many there are of each type; of the last 0: all
  /// others.
  struct Devices {
    Device device;
    int64_t count = 0;
  };
  std::vector<Devices> devices;
  std::vector<Level> levels;

  /// The number of devices, or nothing where it is not limited.
  std::optional<int64_t> size() const;
  const Device &deviceAt(int64_t number) const;
  /// The outermost level at which two devices are in different units.
  const Level &between(int64_t a, int64_t b) const;

  /// How `ranks`, which are numbers of devices, lie.
  GroupLayout layoutOf(llvm::ArrayRef<int64_t> ranks) const;
  /// Seconds of a collective in which each member sends `bytes`: by the algorithm that takes least.
  /// One for which the cluster names no algorithm is a ring of messages.
  double collectiveSeconds(llvm::StringRef collective, double bytes,
                           const GroupLayout &layout) const;
  /// How messages between pairs of sender and receiver get there.
  MessageWay wayOf(llvm::ArrayRef<std::pair<int64_t, int64_t>> messages) const;

  /// Devices of one unit of `level`, those of the levels inside it counted.
  int64_t devicesPerUnit(size_t level) const;
  /// Groups lie alike whose first members are so many devices apart.
  int64_t periodOfPlaces() const;

private:
  double torusSeconds(llvm::StringRef collective, double bytes, const GroupLayout &layout) const;
};

/// A cluster from a file of TOML, or one of those that Meshwright has, as the value of an option.
struct ClusterChoice {
  std::string text;                       ///< as given; empty: none
  std::shared_ptr<const Cluster> cluster; ///< null: none
  explicit operator bool() const { return cluster != nullptr; }
  const Cluster *operator->() const { return cluster.get(); }
  const Cluster &operator*() const { return *cluster; }
};
llvm::Error parseOption(llvm::StringRef text, ClusterChoice &choice);
inline std::string optionText(const ClusterChoice &choice) { return choice.text; }

/// Reads the text of a cluster file; errors name `file`, line and key.
llvm::Expected<Cluster> readCluster(llvm::StringRef text, llvm::StringRef file);

/// The clusters that Meshwright has: names and texts of files.
struct NamedCluster {
  llvm::StringRef name, text;
};
llvm::ArrayRef<NamedCluster> getClusters();

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_CLUSTER_H
