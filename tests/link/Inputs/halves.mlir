func.func @halves(%h: tensor<?x64xf16> {ktn.name = "h"}, %s: tensor<?x64xf32> {ktn.name = "s"}, %d: tensor<?x64xf64> {ktn.name = "d"})
    -> (tensor<?x64xf32> {ktn.name = "wide"}, tensor<?x64xf64> {ktn.name = "wider"}, tensor<?x64xf16> {ktn.name = "narrow"},
        tensor<?x64xf16> {ktn.name = "from_double"}, tensor<?x64xf16> {ktn.name = "twice"}) {
  %0 = ktn.cast %h to f32 : tensor<?x64xf16> -> tensor<?x64xf32>
  %1 = ktn.cast %h to f64 : tensor<?x64xf16> -> tensor<?x64xf64>
  %2 = ktn.cast %s to f16 : tensor<?x64xf32> -> tensor<?x64xf16>
  %3 = ktn.cast %d to f16 : tensor<?x64xf64> -> tensor<?x64xf16>
  %4 = ktn.add %h, %h : tensor<?x64xf16>
  return %0, %1, %2, %3, %4 : tensor<?x64xf32>, tensor<?x64xf64>, tensor<?x64xf16>, tensor<?x64xf16>, tensor<?x64xf16>
}
