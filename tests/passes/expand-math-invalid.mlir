// RUN: keratin-opt %s --ktn-expand-math --split-input-file --verify-diagnostics

func.func @no_sequence(%x: vector<8xf32>) -> vector<8xf32> {
  // expected-error@+1 {{op of 'vector<8xf32>' has no expansion and would need libm}}
  %0 = math.atan %x : vector<8xf32>
  return %0 : vector<8xf32>
}

// -----

func.func @no_such_float(%x: f128) -> f128 {
  // expected-error@+1 {{op of 'f128' has no expansion and would need libm}}
  %0 = math.exp %x : f128
  return %0 : f128
}
