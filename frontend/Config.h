//===- Config.h - what is configured beside config.h ----------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_CONFIG_H
#define KERATIN_FRONTEND_CONFIG_H

#include <optional>
#include <string>

namespace keratin::backend {

/// What cache_directory (keratin/cache.h) gives until reload_config.
void overrideCacheDirectory(const std::optional<std::string> &directory);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_CONFIG_H
