//===- Weights.h - where a layer finds its variables ------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_WEIGHTS_H
#define KERATIN_FRONTEND_MODEL_WEIGHTS_H

#include "Hdf5.h"

#include <memory>
#include <string>
#include <vector>

namespace keratin::model {

/// The group of a layer in Keras 3 weights: the snake_case of its class name.
/// The n-th layer of a class in a model gets the suffix `_n`.
std::string snakeCase(const std::string &className);

/// The files that hold the weights of a model: one, or the shards of one.
class WeightFiles {
public:
  explicit WeightFiles(std::vector<Hdf5File> shards)
      : shards(std::move(shards)) {}
  static std::shared_ptr<const WeightFiles> of(Hdf5File file);

  bool has(const std::string &path) const { return find(path); }
  Array dataset(const std::string &path) const;
  std::optional<std::string> text(const std::string &path,
                                  const std::string &attribute) const;
  std::optional<std::vector<std::string>>
  texts(const std::string &path, const std::string &attribute) const;

private:
  /// The shard that has `path`, or null. A group can be in several, empty in
  /// all but one; a dataset is in one.
  const Hdf5File *find(const std::string &path) const;

  std::vector<Hdf5File> shards;
};

/// The variables of a layer and of the layers inside of it, in the order in
/// which Keras creates them.
class WeightScope {
public:
  /// No variables at all.
  WeightScope() = default;
  /// Keras 3: the group `path` has `vars/0`, `vars/1`, … and a group for each
  /// layer inside.
  static WeightScope keras3(std::shared_ptr<const WeightFiles> file,
                            std::string path);
  /// Keras 2 and legacy `.h5`: `model_weights/<layer>` lists the names of all
  /// variables, those of inner layers included.
  static WeightScope legacy(std::shared_ptr<const WeightFiles> file);

  /// The scope of a layer that another layer keeps in `attribute`.
  WeightScope attribute(const std::string &attribute) const;
  /// The scope of a layer of a model: `group` is its Keras 3 name in the list
  /// `layers`, `name` is the layer's own.
  WeightScope layer(const std::string &group, const std::string &name) const;

  /// Where the next variable is; empty when there is none.
  std::string next() const;
  /// Reads the next variable and moves on.
  Array take();
  /// How many variables are left.
  size_t left() const;
  /// The name of the layer that wrote this group, if it is known.
  std::string writer() const;

private:
  struct Legacy {
    std::vector<std::string> paths; // of datasets
    size_t next = 0;
  };

  std::shared_ptr<const WeightFiles> file;
  std::string path;
  size_t index = 0;                   // Keras 3
  std::shared_ptr<Legacy> legacyList; // shared with the inner layers
  bool isLegacy = false;
};

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_WEIGHTS_H
