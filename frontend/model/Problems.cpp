//===- Problems.cpp - what is wrong with a model file ---------------------===//
#include "Problems.h"

#include <algorithm>

using namespace keratin::model;

void Problems::add(std::string line) {
  std::replace_if(
      line.begin(), line.end(),
      [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  if (std::find(lines.begin(), lines.end(), line) != lines.end())
    return; // the same layer called again
  if (lines.size() < most)
    lines.push_back(std::move(line));
  else if (lines.size() == most)
    lines.push_back("more problems follow that are not listed");
}
