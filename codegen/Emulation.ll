; Emulation.ll - what instructions compute, in others.
;
; `emulated.NAME` is LLVM's `llvm.x86.NAME` as our code calls it: for all lanes,
; and rounding as the machine does. The meaning of each is that of Intel's
; Instruction Set Reference. Those of tiles have one more argument in front,
; `file`: 64 bytes of configuration and eight tiles of 1 KiB.

; 1 / x, of which 14 bits are right: no machine has fewer.
define <16 x float> @emulated.avx512.rcp14.ps.512(
    <16 x float> %x, <16 x float> %other, i16 %mask) alwaysinline {
  %all = fdiv <16 x float> splat (float 1.0), %x
  %bits = bitcast <16 x float> %all to <16 x i32>
  %first = and <16 x i32> %bits, splat (i32 -512)
  %y = bitcast <16 x i32> %first to <16 x float>
  ret <16 x float> %y
}

; x - floor(x), which is what the immediate 9 stands for; 0 for infinities.
define <16 x float> @emulated.avx512.mask.reduce.ps.512(
    <16 x float> %x, i32 %immediate, <16 x float> %other, i16 %mask,
    i32 %rounding) alwaysinline {
  %floor = call <16 x float> @llvm.floor.v16f32(<16 x float> %x)
  %rest = fsub <16 x float> %x, %floor
  %magnitude = call <16 x float> @llvm.fabs.v16f32(<16 x float> %x)
  %infinite = fcmp oeq <16 x float> %magnitude, splat (float 0x7FF0000000000000)
  %y = select <16 x i1> %infinite,
      <16 x float> zeroinitializer, <16 x float> %rest
  ret <16 x float> %y
}

; x 2^floor(k), rounded once, from a double that holds it all.
define <16 x float> @emulated.avx512.mask.scalef.ps.512(
    <16 x float> %x, <16 x float> %k, <16 x float> %other, i16 %mask,
    i32 %rounding) alwaysinline {
  %floor = call <16 x float> @llvm.floor.v16f32(<16 x float> %k)
  %low = fcmp olt <16 x float> %floor, splat (float -600.0)
  %above = select <16 x i1> %low,
      <16 x float> splat (float -600.0), <16 x float> %floor
  %high = fcmp ogt <16 x float> %above, splat (float 600.0)
  %near = select <16 x i1> %high,
      <16 x float> splat (float 600.0), <16 x float> %above
  %nan = fcmp uno <16 x float> %k, %k
  %number = select <16 x i1> %nan,
      <16 x float> zeroinitializer, <16 x float> %near
  %whole = fptosi <16 x float> %number to <16 x i32>
  %wide = sext <16 x i32> %whole to <16 x i64>
  %exponent = add <16 x i64> %wide, splat (i64 1023)
  %bits = shl <16 x i64> %exponent, splat (i64 52)
  %scale = bitcast <16 x i64> %bits to <16 x double>
  %double = fpext <16 x float> %x to <16 x double>
  %product = fmul <16 x double> %double, %scale
  %rounded = fptrunc <16 x double> %product to <16 x float>
  %y = select <16 x i1> %nan, <16 x float> %k, <16 x float> %rounded
  ret <16 x float> %y
}

; The last three bits of a number say which element.
define <8 x float> @emulated.avx2.permps(
    <8 x float> %a, <8 x i32> %numbers) alwaysinline {
  %table = alloca [8 x float], align 32
  store <8 x float> %a, ptr %table, align 32
  %last = and <8 x i32> %numbers, splat (i32 7)
  %places = getelementptr float, ptr %table, <8 x i32> %last
  %y = call <8 x float> @llvm.masked.gather.v8f32.v8p0(
      <8 x ptr> %places, i32 4, <8 x i1> splat (i1 true), <8 x float> poison)
  ret <8 x float> %y
}

; Bit 4 of a number says which of the two, the bits before it which element.
define <16 x float> @emulated.avx512.vpermi2var.ps.512(
    <16 x float> %a, <16 x i32> %numbers, <16 x float> %b) alwaysinline {
  %table = alloca [32 x float], align 64
  %half = getelementptr float, ptr %table, i64 16
  store <16 x float> %a, ptr %table, align 64
  store <16 x float> %b, ptr %half, align 64
  %last = and <16 x i32> %numbers, splat (i32 31)
  %places = getelementptr float, ptr %table, <16 x i32> %last
  %y = call <16 x float> @llvm.masked.gather.v16f32.v16p0(
      <16 x ptr> %places, i32 4, <16 x i1> splat (i1 true), <16 x float> poison)
  ret <16 x float> %y
}

; To each sum the products of a pair, the odd one first. Those of two numbers of
; 8 bits are exact.
define <16 x float> @emulated.avx512bf16.dpbf16ps.512(
    <16 x float> %sum, <32 x bfloat> %a, <32 x bfloat> %b) alwaysinline {
  %as = bitcast <32 x bfloat> %a to <16 x i32>
  %bs = bitcast <32 x bfloat> %b to <16 x i32>
  %aodd = and <16 x i32> %as, splat (i32 -65536)
  %bodd = and <16 x i32> %bs, splat (i32 -65536)
  %aeven = shl <16 x i32> %as, splat (i32 16)
  %beven = shl <16 x i32> %bs, splat (i32 16)
  %p = bitcast <16 x i32> %aodd to <16 x float>
  %q = bitcast <16 x i32> %bodd to <16 x float>
  %r = bitcast <16 x i32> %aeven to <16 x float>
  %s = bitcast <16 x i32> %beven to <16 x float>
  %first = fmul <16 x float> %p, %q
  %second = fmul <16 x float> %r, %s
  %t = fadd <16 x float> %sum, %first
  %y = fadd <16 x float> %t, %second
  ret <16 x float> %y
}

; The configuration of tile registers, and eight of them.
define void @emulated.ldtilecfg(ptr %file, ptr %configuration) {
  %bytes = load <64 x i8>, ptr %configuration, align 1
  store <64 x i8> %bytes, ptr %file, align 64
  ret void
}

define void @emulated.tilerelease(ptr %file) {
  ret void
}

define internal ptr @emulated.tile(ptr %file, i8 %number) alwaysinline {
  %index = zext i8 %number to i64
  %tile = getelementptr [1024 x i8], ptr %file, i64 %index
  %behind = getelementptr i8, ptr %tile, i64 64
  ret ptr %behind
}

define internal i64 @emulated.rows(ptr %file, i8 %number) alwaysinline {
  %index = zext i8 %number to i64
  %place = getelementptr i8, ptr %file, i64 %index
  %behind = getelementptr i8, ptr %place, i64 48
  %byte = load i8, ptr %behind, align 1
  %rows = zext i8 %byte to i64
  ret i64 %rows
}

; In words of 32 bits.
define internal i64 @emulated.columns(ptr %file, i8 %number) alwaysinline {
  %index = zext i8 %number to i64
  %place = getelementptr i16, ptr %file, i64 %index
  %behind = getelementptr i8, ptr %place, i64 16
  %bytes = load i16, ptr %behind, align 2
  %words = lshr i16 %bytes, 2
  %columns = zext i16 %words to i64
  ret i64 %columns
}

define internal <16 x i1> @emulated.mask(i64 %columns) alwaysinline {
  %one = insertelement <16 x i64> poison, i64 %columns, i32 0
  %all = shufflevector <16 x i64> %one, <16 x i64> poison,
      <16 x i32> zeroinitializer
  %mask = icmp ult <16 x i64>
      <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9,
       i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>, %all
  ret <16 x i1> %mask
}

define void @emulated.tilezero(ptr %file, i8 %number) {
  %tile = call ptr @emulated.tile(ptr %file, i8 %number)
  call void @llvm.memset.p0.i64(ptr align 64 %tile, i8 0, i64 1024, i1 false)
  ret void
}

define void @emulated.tileloadd64(
    ptr %file, i8 %number, ptr %memory, i64 %stride) {
start:
  call void @emulated.tilezero(ptr %file, i8 %number)
  %tile = call ptr @emulated.tile(ptr %file, i8 %number)
  %rows = call i64 @emulated.rows(ptr %file, i8 %number)
  %columns = call i64 @emulated.columns(ptr %file, i8 %number)
  %mask = call <16 x i1> @emulated.mask(i64 %columns)
  br label %loop
loop:
  %row = phi i64 [0, %start], [%next, %loop]
  %distance = mul i64 %row, %stride
  %from = getelementptr i8, ptr %memory, i64 %distance
  %words = call <16 x i32> @llvm.masked.load.v16i32.p0(
      ptr %from, i32 1, <16 x i1> %mask, <16 x i32> zeroinitializer)
  %to = getelementptr <16 x i32>, ptr %tile, i64 %row
  store <16 x i32> %words, ptr %to, align 64
  %next = add i64 %row, 1
  %more = icmp ult i64 %next, %rows
  br i1 %more, label %loop, label %end
end:
  ret void
}

define void @emulated.tilestored64(
    ptr %file, i8 %number, ptr %memory, i64 %stride) {
start:
  %tile = call ptr @emulated.tile(ptr %file, i8 %number)
  %rows = call i64 @emulated.rows(ptr %file, i8 %number)
  %columns = call i64 @emulated.columns(ptr %file, i8 %number)
  %mask = call <16 x i1> @emulated.mask(i64 %columns)
  br label %loop
loop:
  %row = phi i64 [0, %start], [%next, %loop]
  %from = getelementptr <16 x i32>, ptr %tile, i64 %row
  %words = load <16 x i32>, ptr %from, align 64
  %distance = mul i64 %row, %stride
  %to = getelementptr i8, ptr %memory, i64 %distance
  call void @llvm.masked.store.v16i32.p0(
      <16 x i32> %words, ptr %to, i32 1, <16 x i1> %mask)
  %next = add i64 %row, 1
  %more = icmp ult i64 %next, %rows
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Each pair of a row of the first factor times a row of pairs of the second one.
define void @emulated.tdpbf16ps(ptr %file, i8 %sums, i8 %left, i8 %right) {
start:
  %to = call ptr @emulated.tile(ptr %file, i8 %sums)
  %a = call ptr @emulated.tile(ptr %file, i8 %left)
  %b = call ptr @emulated.tile(ptr %file, i8 %right)
  %rows = call i64 @emulated.rows(ptr %file, i8 %sums)
  %depth = call i64 @emulated.columns(ptr %file, i8 %left)
  br label %loop
loop:
  %row = phi i64 [0, %start], [%nextrow, %store]
  %place = getelementptr <16 x float>, ptr %to, i64 %row
  %first = load <16 x float>, ptr %place, align 64
  %arow = getelementptr <16 x i32>, ptr %a, i64 %row
  br label %step
step:
  %k = phi i64 [0, %loop], [%nextk, %step]
  %sum = phi <16 x float> [zeroinitializer, %loop], [%added, %step]
  %at = getelementptr i32, ptr %arow, i64 %k
  %pair = load i32, ptr %at, align 4
  %one = insertelement <16 x i32> poison, i32 %pair, i32 0
  %all = shufflevector <16 x i32> %one, <16 x i32> poison,
      <16 x i32> zeroinitializer
  %p = bitcast <16 x i32> %all to <32 x bfloat>
  %brow = getelementptr <16 x i32>, ptr %b, i64 %k
  %words = load <16 x i32>, ptr %brow, align 64
  %q = bitcast <16 x i32> %words to <32 x bfloat>
  %added = call <16 x float> @emulated.avx512bf16.dpbf16ps.512(
      <16 x float> %sum, <32 x bfloat> %p, <32 x bfloat> %q)
  %nextk = add i64 %k, 1
  %morek = icmp ult i64 %nextk, %depth
  br i1 %morek, label %step, label %store
store:
  %total = fadd <16 x float> %first, %added
  store <16 x float> %total, ptr %place, align 64
  %nextrow = add i64 %row, 1
  %more = icmp ult i64 %nextrow, %rows
  br i1 %more, label %loop, label %end
end:
  ret void
}

declare <16 x float> @llvm.floor.v16f32(<16 x float>)
declare <16 x float> @llvm.fabs.v16f32(<16 x float>)
declare <8 x float> @llvm.masked.gather.v8f32.v8p0(
    <8 x ptr>, i32, <8 x i1>, <8 x float>)
declare <16 x float> @llvm.masked.gather.v16f32.v16p0(
    <16 x ptr>, i32, <16 x i1>, <16 x float>)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare <16 x i32> @llvm.masked.load.v16i32.p0(ptr, i32, <16 x i1>, <16 x i32>)
declare void @llvm.masked.store.v16i32.p0(<16 x i32>, ptr, i32, <16 x i1>)
