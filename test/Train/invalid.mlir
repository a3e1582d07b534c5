// RUN: meshwright-opt %s -split-input-file -verify-diagnostics

// Shape errors name the dimensions that disagree.
func.func @linear(%x: tensor<2x4xf32>, %w: tensor<8x5xf32>) {
  // expected-error @+2 {{'train.linear' op dimension 1 of operand 1 is 5 but dimension 1 of operand 0 is 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<8x5xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @add(%x: tensor<2x4xf32>, %b: tensor<2xf32>) {
  // expected-error @+2 {{is not a trailing part of the shape of}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = train.add %x, %b : (tensor<2x4xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gqa(%q: tensor<1x8x5x4xf32>, %k: tensor<1x8x2x4xf32>) {
  // expected-error @+2 {{'train.attention' op dimension 2 of operand 0 is 5, not a multiple of 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = train.attention %q, %k, %k scale 0.5 causal : (tensor<1x8x5x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x5x4xf32>, tensor<1x5x8xf32>)
  return
}

// -----

func.func @dropout(%x: tensor<2x4xf32>, %ids: tensor<2xi32>, %key: tensor<2xi32>) {
  // expected-error @+1 {{rate must be in [0, 1), found 1.000000e+00}}
  %y = train.dropout %x, %ids, %key rate 1.0 stream 0 : (tensor<2x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @clamp(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{clamps from 2.000000e+00 to 1.000000e+00; the first is at most the second}}
  %y = train.clamp %x from 2.0 to 1.0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @reshape(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{has 8 elements in and 9 out}}
  %y = train.reshape %x : (tensor<2x4xf32>) -> tensor<9xf32>
  return
}

// -----

func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @repeat(%x: tensor<4xf32>, %w: tensor<3x4xf32>) {
  // expected-error @+1 {{takes slices of 'tensor<3x4xf32>', whose first dimension is not 2}}
  %y = train.repeat @layer x 2 carry(%x) each(%w) shared() : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @repeat(%x: tensor<4xf32>, %w: tensor<2x4xf32>) {
  // expected-error @+1 {{expects @layer to have 2 arguments, found 1}}
  %y = train.repeat @layer x 2 carry(%x) each(%w) shared() : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @get() {
  // expected-error @+1 {{names @missing, which is not a train.variable}}
  %y = train.get @missing : tensor<4xf32>
  return
}

// -----

train.variable @w : tensor<4xf32> init <"normal", 0.02> storage <"w">
func.func @get() {
  // expected-error @+1 {{has type 'tensor<5xf32>' but @w is 'tensor<4xf32>'}}
  %y = train.get @w : tensor<5xf32>
  return
}

// -----

// expected-error @+1 {{is stacked, so its storage name needs '{layer}', found 'w'}}
train.variable @w : tensor<2x4xf32> stacked init <"normal", 0.02> storage <"w">

// -----

// expected-error @+1 {{begins with the value INF, which is not finite in 'f32'; give a smaller number}}
train.variable @w : tensor<4xf32> init <"constant", 1.0e+4096>

// -----

// expected-error @+1 {{begins with the value -INF, which is not finite in 'f32'}}
train.variable @w : tensor<4xf32> init <"constant", 0xFFF0000000000000 : f64>

// -----

// expected-error @+1 {{begins with a standard deviation of nan, which is not finite in 'f32'}}
train.variable @w : tensor<4xf32> init <"normal", 0x7FF8000000000000 : f64>

// -----

// expected-error @+1 {{begins with a standard deviation of 1.000000e+300, which is not finite in 'f32'}}
train.variable @w : tensor<4xf32> init <"normal", 1.0e+300>

// -----

// In f32 it would be finite.
// expected-error @+1 {{begins with the value 7.000000e+04, which is not finite in 'f16'}}
train.variable @w : tensor<4xf16> init <"constant", 7.0e+04>

// -----

func.func @contract(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+2 {{is not of the form "a b, b c -> a c"}}
  // expected-error @+1 {{failed to infer returned types}}
  %z = train.contract "a b" %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @cross_per_token(%logits: tensor<2x8xf32>, %targets: tensor<2xi32>) {
  // expected-error @+2 {{'train.cross_entropy' op inferred type(s) 'tensor<2xf32>', 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<f32>', 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %l, %s = train.cross_entropy %logits, %targets scale 1.0 per_token : (tensor<2x8xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @cross(%logits: tensor<2x8xf32>, %targets: tensor<3xi32>) {
  // expected-error @+2 {{'train.cross_entropy' op dimension 0 of operand 1 is 3 but dimension 0 of operand 0 is 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %l, %s = train.cross_entropy %logits, %targets scale 1.0 : (tensor<2x8xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @mask(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{has no dimension 2 in 'tensor<2x8xf32>'}}
  %y = train.mask %x dim 2 below 3 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @decay(%to: tensor<2x8xf32>, %from: tensor<3x8xf32>) {
  // expected-error @below {{dimension 0 of operand 1 is 3 but dimension 0 of operand 0 is 2}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.decay %to, %from : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<2x8x8xf32>
  return
}

// -----

func.func @mask_offset(%x: tensor<2x8xf32>, %begin: tensor<2xi32>) {
  // expected-error @+1 {{needs a tensor<i32> as offset, not 'tensor<2xi32>'}}
  %y = train.mask %x offset %begin dim 1 below 3 : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @dropout_sizes(%x: tensor<2x3x8xf32>, %ids: tensor<2xi32>, %key: tensor<2xi32>) {
  // expected-error @+1 {{needs the logical sizes of 2 dimensions, found 1}}
  %y = train.dropout %x, %ids, %key rate 0.1 stream 0 sizes [8] : (tensor<2x3x8xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @pad(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{pads 'tensor<2x8xf32>' to fewer rows: 7}}
  %y = train.pad %x dim 1 rows 7 : (tensor<2x8xf32>) -> tensor<2x7xf32>
  return
}

// -----

func.func @slice(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{takes 9 rows of 'tensor<2x8xf32>'}}
  %y = train.slice %x dim 1 rows 9 : (tensor<2x8xf32>) -> tensor<2x9xf32>
  return
}

// -----

func.func @redistributes(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{has train.redistributes, but takes 7 rows of 'tensor<2x8xf32>'; all are to be taken}}
  %y = train.slice %x dim 1 rows 7 {train.redistributes} : (tensor<2x8xf32>) -> tensor<2x7xf32>
  return
}

// -----

func.func @redistributed_sum(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{attribute 'train.redistributes' belongs on a train.slice}}
  %y = train.add %x, %x {train.redistributes} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @gather_rows(%table: tensor<8x4xf32>, %ids: tensor<2x3xi32>) {
  // expected-error @+1 {{cannot make 'tensor<2x3x4xbf16>' of rows of 'tensor<8x4xf32>' that 'tensor<2x3xi32>' says}}
  %y = train.gather_rows %table, %ids : (tensor<8x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xbf16>
  return
}

// -----

func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.role = #train.role<forward>} {
  return %x : tensor<4xf32>
}
func.func @roles(%x: tensor<4xf32>) {
  // expected-error @+1 {{has train.role backward, but @layer has forward}}
  %y = train.repeat @layer x 2 reverse carry(%x) each() shared() {train.role = #train.role<backward>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{attribute 'train.role' is "forward"; expected e.g. #train.role<forward>}}
func.func private @role(%x: tensor<4xf32>) attributes {train.role = "forward"}

// -----

func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @chunk(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'train.chunk' is -1 : i64; expected an i64 from 0 on}}
  %y = train.repeat @layer x 2 carry(%x) each() shared() {train.chunk = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{rows of 'w' that repeat need a period that divides `full` and runs of begin, count and step, found period 5, full 24 and 3 numbers in runs}}
train.variable @w : tensor<8x4xf32> init <"constant", 1.0> storage <"w", full = 24, period = 5, runs = [0, 4, 1]>

// -----

// expected-error @+1 {{a run of rows of 'w' begins at 1, has 4 rows with step 4 and does not lie in its period of 12}}
train.variable @w : tensor<8x4xf32> init <"constant", 1.0> storage <"w", full = 24, period = 12, runs = [1, 4, 4]>

// -----

func.func @cap(%q: tensor<1x8x2x4xf32>) {
  // expected-error @+1 {{attention needs a cap of 0, for none, or above, found -1}}
  %o, %l = train.attention %q, %q, %q scale 0.5 causal cap -1.0 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @query_offset(%q: tensor<1x8x2x4xf32>, %m: tensor<3xi32>) {
  // expected-error @+1 {{needs a tensor<i32> as offset, not 'tensor<3xi32>'}}
  %o, %l = train.attention %q, %q, %q query_offset %m scale 0.5 causal : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<3xi32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @positions(%q: tensor<1x8x2x4xf32>, %p: tensor<1x7xi32>) {
  // expected-error @+1 {{needs positions of [1, 8] in 'i32', found 'tensor<1x7xi32>'}}
  %o, %l = train.attention %q, %q, %q positions %p scale 0.5 causal : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x7xi32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @part_of_unknown_keys(%q: tensor<1x8x2x4xf32>, %f: tensor<i32>) {
  // expected-error @+1 {{says how many keys there are exactly when it has a part of them}}
  %o, %l = train.attention %q, %q, %q key_offset %f scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<i32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @before_all_keys(%q: tensor<1x8x2x4xf32>, %l: tensor<1x2x8xf32>) {
  // expected-error @+1 {{takes what was before, both results of it, with a part of the keys alone}}
  %o, %m = train.attention %q, %q, %q before(%q, %l) scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @narrow_before(%q: tensor<1x8x2x4xbf16>, %l: tensor<1x2x8xf32>, %f: tensor<i32>) {
  // expected-error @+1 {{needs before of 'tensor<1x8x2x4xf32>' and 'tensor<1x2x8xf32>', found 'tensor<1x8x2x4xbf16>'}}
  %o, %m = train.attention %q, %q, %q key_offset %f before(%q, %l) scale 0.5 keys 16 : (tensor<1x8x2x4xbf16>, tensor<1x8x2x4xbf16>, tensor<1x8x2x4xbf16>, tensor<i32>, tensor<1x8x2x4xbf16>, tensor<1x2x8xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @positions_causal(%q: tensor<1x8x2x4xf32>, %p: tensor<1x8xi32>) {
  // expected-error @+1 {{with positions is causal}}
  %o, %l = train.attention %q, %q, %q positions %p scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8xi32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @rope_table_positions(%p: tensor<2x8xi32>) {
  // expected-error @+1 {{results must both be [sequences, positions, 2], found 'tensor<8x2xf32>' and 'tensor<8x2xf32>'}}
  %c, %s = train.rope_table [1.0, 0.1] positions %p : (tensor<2x8xi32>) -> (tensor<8x2xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @rope_table_both(%b: tensor<i32>, %p: tensor<2x8xi32>) {
  // expected-error @+1 {{takes an offset, or positions of [sequences, positions], found 'tensor<2x8xi32>' and an offset}}
  %c, %s = train.rope_table [1.0, 0.1] offset %b positions %p : (tensor<i32>, tensor<2x8xi32>) -> (tensor<2x8x2xf32>, tensor<2x8x2xf32>)
  return
}

// -----

func.func @slopes(%q: tensor<1x8x2x4xf32>, %m: tensor<3xf32>) {
  // expected-error @+1 {{needs slopes of [2] in 'f32', found 'tensor<3xf32>'}}
  %o, %l = train.attention %q, %q, %q slopes %m scale 0.5 causal : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<3xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @sinks(%q: tensor<1x8x2x4xbf16>, %m: tensor<2xbf16>) {
  // expected-error @+1 {{needs sinks of [2] in 'f32', found 'tensor<2xbf16>'}}
  %o, %l = train.attention %q, %q, %q sinks %m scale 0.5 causal : (tensor<1x8x2x4xbf16>, tensor<1x8x2x4xbf16>, tensor<1x8x2x4xbf16>, tensor<2xbf16>) -> (tensor<1x8x2x4xbf16>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @bias() {
  // expected-error @+1 {{bias must be above 0, found -1}}
  %y = train.alibi_slopes bias -1.0 : () -> tensor<4xf32>
  return
}

// -----

func.func @slice(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{takes 3 rows from row 4 of 'tensor<4x6xf32>'}}
  %y = train.slice %x dim 1 from 4 rows 3 : (tensor<4x6xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @pad(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{pads 'tensor<4x6xf32>' from row 2 to fewer rows: 7}}
  %y = train.pad %x dim 1 from 2 rows 7 : (tensor<4x6xf32>) -> tensor<4x7xf32>
  return
}

// -----

// expected-error @+1 {{has rows of a tensor for each expert, so it needs 'experts'}}
train.variable @w : tensor<2x4x3xf32> init <"constant", 1.0> storage <"w{rows}", full = 8>

// -----

// expected-error @+1 {{has a tensor for each expert, so it needs 'experts'}}
train.variable @w : tensor<8x4xf32> stacked init <"constant", 1.0> storage <"w.{layer}.{expert}">

// -----

// expected-error @+1 {{has no dimension to count experts}}
train.variable @w : tensor<8xf32> stacked experts 2 init <"constant", 1.0> storage <"w.{layer}.{expert}">

// -----

// expected-error @+1 {{has experts, but a token uses 0}}
train.variable @w : tensor<8x4xf32> stacked experts 0 init <"constant", 1.0>

// -----

// expected-error @+1 {{has no dimension to count heads}}
train.variable @w : tensor<8xf32> stacked init <"constant", 1.0> storage <"w.{layer}.{head}">

// -----

// expected-error @+1 {{has a tensor for each head, but its first dimension counts experts}}
train.variable @w : tensor<8x4xf32> experts 2 init <"constant", 1.0> storage <"w.{head}">

// -----

func.func @sign_bits(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{makes 'tensor<4xi8>' of 'tensor<4x6xf32>': a byte of the 8 elements of each row}}
  %b = train.sign_bits %x : (tensor<4x6xf32>) -> tensor<4xi8>
  return
}

// -----

func.func @magnitude(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{makes 'tensor<6xf32>' of 'tensor<4x6xf32>': a number of its type for each of its rows}}
  %y = train.magnitude %x : (tensor<4x6xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @signs(%b: tensor<4x2xi8>, %s: tensor<2xf32>) {
  // expected-error @+1 {{makes 'tensor<4x2x8xf32>' of 'tensor<4x2xi8>' by 'tensor<2xf32>': there are 8 numbers for a byte, and a scale for a row of bytes}}
  %y = train.signs %b by %s : (tensor<4x2xi8>, tensor<2xf32>) -> tensor<4x2x8xf32>
  return
}

// -----

func.func @sum_signs(%b: tensor<4x2xi8>, %s: tensor<4xf32>) {
  // expected-error @+1 {{adds over dimension 1 of 'tensor<4xf32>', which it does not have}}
  %y = train.sum_signs %b by %s over 1 : (tensor<4x2xi8>, tensor<4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @sparsify(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{keeps from 1 to the 6 elements of a row, found 'tensor<4x7xf32>'}}
  %v, %i, %r = train.sparsify %x : (tensor<4x6xf32>) -> (tensor<4x7xf32>, tensor<4x7xi32>, tensor<4x6xf32>)
  return
}

// -----

func.func @sparsify_shapes(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{makes 'tensor<4x2xf32>', 'tensor<4x3xi32>' and 'tensor<4x6xf32>' of 'tensor<4x6xf32>': values and ids have a row for each of its rows, and the rest is of its type}}
  %v, %i, %r = train.sparsify %x : (tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x3xi32>, tensor<4x6xf32>)
  return
}

// -----

func.func @densify(%v: tensor<4x2x3xf32>, %i: tensor<4x2x3xi32>) {
  // expected-error @+1 {{adds over dimension 2 of 'tensor<4x2x3xf32>', which has to be one before the last}}
  %y = train.densify %v at %i over 2 : (tensor<4x2x3xf32>, tensor<4x2x3xi32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @densify_shapes(%v: tensor<4x2x3xf32>, %i: tensor<4x2x3xi32>) {
  // expected-error @+1 {{makes 'tensor<2x9xf32>' of 'tensor<4x2x3xf32>' at 'tensor<4x2x3xi32>': there is an id for each value, and y lacks dimension 1 and has its own last one}}
  %y = train.densify %v at %i over 1 : (tensor<4x2x3xf32>, tensor<4x2x3xi32>) -> tensor<2x9xf32>
  return
}

// -----

func.func @densify_many(%v: tensor<4x2x3xf32>, %i: tensor<4x2x3xi32>) {
  // expected-error @+1 {{makes 'tensor<4x536870912xf32>' of 2147483648 elements; a device may have at most 2147483647}}
  %y = train.densify %v at %i over 1 : (tensor<4x2x3xf32>, tensor<4x2x3xi32>) -> tensor<4x536870912xf32>
  return
}

// -----

func.func @place_ids(%ids: tensor<4x2x3xi32>) {
  // expected-error @+1 {{counts rows without dimension 2 of 'tensor<4x2x3xi32>', which has to be one before the last}}
  %y = train.place_ids %ids of 5 over 2 : tensor<4x2x3xi32>
  return
}

// -----

func.func @place_many_ids(%ids: tensor<4x2x3xi32>) {
  // expected-error @+1 {{has 4 rows of 536870912 elements; together they may have at most 2147483647}}
  %y = train.place_ids %ids of 536870912 over 1 : tensor<4x2x3xi32>
  return
}

// -----

func.func @top_k(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{k must be from 1 to the 6 elements of a row, found 7}}
  %y = train.top_k %x k 7 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @tally(%mask: tensor<2x4x6xf32>, %logits: tensor<2x4x5xf32>) {
  // expected-error @+2 {{'train.tally' op failed to infer returned types}}
  // expected-error @+1 {{train.tally}}
  %y = train.tally %mask, %logits : (tensor<2x4x6xf32>, tensor<2x4x5xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @balance(%bias: tensor<6xf32>) {
  // expected-error @+1 {{rate must be above 0, found 0}}
  %y = train.balance %bias by %bias rate 0.0 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @one_hot(%x: tensor<4x6xi32>) {
  // expected-error @+1 {{makes 'tensor<4x8xf32>' of 'tensor<4x6xi32>'; the result has one dimension more, the columns}}
  %y = train.one_hot %x : (tensor<4x6xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @route(%x: tensor<1x4x6xf32>) {
  // expected-error @+1 {{k must be from 1 to the 6 experts, found 0}}
  %a, %b, %c, %d = train.route %x k 0 blocks 1 slots 1 : (tensor<1x4x6xf32>) -> (tensor<0x1x4xi32>, tensor<0x1x4xi32>, tensor<1x1x1xi32>, tensor<1x1x1xi32>)
  return
}

// -----

func.func @route(%x: tensor<1x4x6xf32>) {
  // expected-error@+1 {{blocks must divide the 6 experts, found 4}}
  %a, %b, %c, %d = train.route %x k 2 blocks 4 slots 8 : (tensor<1x4x6xf32>) -> (tensor<2x1x4xi32>, tensor<2x1x4xi32>, tensor<4x1x8xi32>, tensor<4x1x8xi32>)
  return
}

// -----

func.func @route(%x: tensor<1x4x6xf32>) {
  // expected-error@+1 {{slots must be at least 8, as many rows as a sequence may have in a block, found 7}}
  %a, %b, %c, %d = train.route %x k 5 blocks 3 slots 7 : (tensor<1x4x6xf32>) -> (tensor<5x1x4xi32>, tensor<5x1x4xi32>, tensor<3x1x7xi32>, tensor<3x1x7xi32>)
  return
}

// -----

func.func @grouped_linear_grad(%x: tensor<2x1x7x3xf32>, %e: tensor<2x1x7xi32>) {
  // expected-error@+2 {{count must be a multiple of the 2 blocks, found 5}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = train.grouped_linear_grad %x, %x of %e count 5 : (tensor<2x1x7x3xf32>, tensor<2x1x7x3xf32>, tensor<2x1x7xi32>) -> tensor<5x3x3xf32>
  return
}

// -----

func.func @dispatch(%x: tensor<4x6xf32>, %c: tensor<1x4x2xi32>, %r: tensor<2x1x4xi32>) {
  // expected-error @+1 {{x must be [b, s, h] or [k, b, s, h], found 'tensor<4x6xf32>'}}
  %y = train.dispatch %x by %c, %r : (tensor<4x6xf32>, tensor<1x4x2xi32>, tensor<2x1x4xi32>) -> tensor<1x4x2x6xf32>
  return
}

// -----

func.func @full_precision(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'train.full_precision' is true; expected no value}}
  %y = train.silu %x {train.full_precision = true} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @part(%r: tensor<2x4x3xi32>, %c: tensor<2x4x6xi32>) {
  // expected-error @+1 {{a round has no part 2 of 2}}
  %n:3 = train.rows_of_round of %r, %c, %c slots 2 part 2 of 2 : (tensor<2x4x3xi32>, tensor<2x4x6xi32>, tensor<2x4x6xi32>) -> (tensor<2x4x3xi32>, tensor<2x4x2xi32>, tensor<2x4x2xi32>)
  return
}

// -----

func.func @rounds(%c: tensor<2x4x6xi32>) {
  // expected-error @+1 {{slots of a round must be from 1 to those of all rows, 6, found 7}}
  %n = train.rounds %c slots 7 : (tensor<2x4x6xi32>) -> tensor<i32>
  return
}

// -----

func.func @rounds(%c: tensor<2x4x6xi32>) {
  // expected-error @+1 {{has a share of 12 slots, but there are 6}}
  %n = train.rounds %c slots 4 of 12 : (tensor<2x4x6xi32>) -> tensor<i32>
  return
}

// -----

func.func @route(%x: tensor<1x4x6xf32>) {
  // expected-error@+1 {{a piece of 3 tokens does not divide sequences of 4 tokens with 8 slots into equal pieces}}
  %a, %b, %c, %d = train.route %x k 2 blocks 3 slots 8 {piece = 3 : i64} : (tensor<1x4x6xf32>) -> (tensor<2x1x4xi32>, tensor<2x1x4xi32>, tensor<3x1x8xi32>, tensor<3x1x8xi32>)
  return
}

// -----

func.func @route(%x: tensor<1x4x6xf32>) {
  // expected-error@+1 {{has a capacity, which counts the tokens of whole sequences, and pieces of sequences; leave out one}}
  %a, %b, %c, %d = train.route %x k 2 blocks 3 slots 8 {capacity = 3 : i64, piece = 2 : i64} : (tensor<1x4x6xf32>) -> (tensor<2x1x4xi32>, tensor<2x1x4xi32>, tensor<3x1x8xi32>, tensor<3x1x8xi32>)
  return
}

// -----

func.func @part(%r: tensor<2x4x6xi32>, %c: tensor<2x4x6xi32>) {
  // expected-error @+1 {{a piece of 2 tokens does not divide sequences of 6 tokens with 4 slots into equal pieces}}
  %n:3 = train.rows_of_round of %r, %c, %c slots 4 {piece = 2 : i64} : (tensor<2x4x6xi32>, tensor<2x4x6xi32>, tensor<2x4x6xi32>) -> (tensor<2x4x6xi32>, tensor<2x4x4xi32>, tensor<2x4x4xi32>)
  return
}

// -----

func.func private @round(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32>
func.func @sliced(%x: tensor<4xf32>, %w: tensor<3x4xf32>, %n: tensor<i32>) {
  // expected-error @+1 {{has a number of iterations that is not fixed, but slices; only carry and shared are possible, and slices where the iterations are microbatches}}
  %y = train.repeat @round x 3 times %n carry(%x) each(%w) shared() : (tensor<4xf32>, tensor<3x4xf32>, tensor<i32>) -> tensor<4xf32>
  return
}

// -----

func.func private @part(%x: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {train.role = #train.role<microbatch>}
func.func @stacked(%x: tensor<4xf32>, %w: tensor<3x4xf32>, %n: tensor<i32>) {
  // expected-error @+1 {{has a number of iterations that is not fixed, but stacks; only carry and shared are possible, and slices where the iterations are microbatches}}
  %y:2 = train.repeat @part x 3 times %n carry(%x) each(%w) shared() {train.role = #train.role<microbatch>} : (tensor<4xf32>, tensor<3x4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<3x4xf32>)
  return
}

// -----

func.func private @round(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @backward(%x: tensor<4xf32>, %n: tensor<i32>) {
  // expected-error @+1 {{has a number of iterations that is not fixed, but runs in reverse; only carry and shared are possible, and slices where the iterations are microbatches}}
  %y = train.repeat @round x 3 times %n reverse carry(%x) each() shared() : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  return
}

// -----

func.func private @round(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @many(%x: tensor<4xf32>, %n: tensor<2xi32>) {
  // expected-error @+1 {{takes the number of its iterations from 'tensor<2xi32>'; expected tensor<i32>}}
  %y = train.repeat @round x 3 times %n carry(%x) each() shared() : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @route(%x: tensor<1x4x6xf32>) {
  // expected-error@+1 {{slots must be at least 6, as many rows as a sequence may have in a block, found 5}}
  %a, %b, %c, %d = train.route %x k 5 blocks 3 slots 5 {capacity = 3 : i64} : (tensor<1x4x6xf32>) -> (tensor<5x1x4xi32>, tensor<5x1x4xi32>, tensor<3x1x5xi32>, tensor<3x1x5xi32>)
  return
}

// -----

func.func @route(%x: tensor<1x4x6xf32>) {
  // expected-error@+1 {{capacity must be at least 1, or 0 for none, found -1}}
  %a, %b, %c, %d = train.route %x k 2 blocks 3 slots 8 {capacity = -1 : i64} : (tensor<1x4x6xf32>) -> (tensor<2x1x4xi32>, tensor<2x1x4xi32>, tensor<3x1x8xi32>, tensor<3x1x8xi32>)
  return
}

// -----

func.func @gradient_of_unknown_keys(%q: tensor<1x8x2x4xf32>, %l: tensor<1x2x8xf32>, %f: tensor<i32>) {
  // expected-error @+1 {{says how many keys there are exactly when it has a part of them}}
  %a, %b, %c = train.attention_grad %q, %q, %q, %q, %q, %l key_offset %f scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<i32>) -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @gradient_of_a_row_of_offsets(%q: tensor<1x8x2x4xf32>, %l: tensor<1x2x8xf32>, %f: tensor<3xi32>) {
  // expected-error @+1 {{needs a tensor<i32> as offset, not 'tensor<3xi32>'}}
  %a, %b, %c = train.attention_grad %q, %q, %q, %q, %q, %l key_offset %f scale 0.5 keys 16 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<3xi32>) -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @window(%q: tensor<1x8x2x4xf32>) {
  // expected-error @+1 {{attention needs window from 0 to 2^31 - 1, found -3}}
  %o, %l = train.attention %q, %q, %q scale 0.5 causal window -3 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @chunk(%q: tensor<1x8x2x4xf32>) {
  // expected-error @+1 {{attention in chunks of 4 must be causal}}
  %o, %l = train.attention %q, %q, %q scale 0.5 chunk 4 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @stride(%q: tensor<1x8x2x4xf32>) {
  // expected-error @+1 {{attention needs query_stride from 1 to 2^31 - 1, found 0}}
  %o, %l = train.attention %q, %q, %q scale 0.5 causal query_stride 0 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @dealt(%q: tensor<1x8x2x4xf32>) {
  // expected-error @+1 {{'train.attention' op has queries that are 2 positions apart without query_offset}}
  %o, %l = train.attention %q, %q, %q scale 0.5 causal query_stride 2 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @apart(%q: tensor<1x8x2x4xf32>) {
  // expected-error @+1 {{'train.attention' op has keys that are 2 positions apart without key_offset}}
  %o, %l = train.attention %q, %q, %q scale 0.5 causal key_stride 2 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @few(%q: tensor<1x8x2x4xf32>, %f: tensor<i32>) {
  // expected-error @+1 {{attention needs keys from 0 to 2^31 - 1, found -8}}
  %o, %l = train.attention %q, %q, %q key_offset %f scale 0.5 keys -8 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<i32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'train.rms_norm' op attribute 'eps' failed to satisfy constraint: 64-bit float attribute above 0}}
  %y = train.rms_norm %x, %w eps 0.0 : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// expected-error @+1 {{is stored in rows along dimension 3 of tensor 'w', which has 2}}
train.variable @w : tensor<4x4xf32> init <"normal", 0.02> storage <"w", dim = 3, full = 8>

// -----

// A dimension that counts layers is none of the file's tensor.
// expected-error @+1 {{is stored in rows along dimension 2 of tensor 'w.{layer}', which has 2}}
train.variable @w : tensor<4x4x4xf32> stacked init <"normal", 0.02> storage <"w.{layer}", dim = 2, full = 8>

// -----

// expected-error @+1 {{is stored in tensor 'w' transposed, but has 1 dimensions there; two are needed}}
train.variable @w : tensor<4xf32> init <"normal", 0.02> storage <"w", transpose = true>

// -----

// expected-error @+1 {{rows of 'w' have a dimension, an offset and a size from 0 on, of less than 2^31 rows, found dim 0, offset -4 and full 8}}
train.variable @w : tensor<4xf32> init <"normal", 0.02> storage <"w", offset = -4, full = 8>

// -----

func.func private @layer(tensor<4xf32>) -> tensor<4xf32>
// expected-error @+1 {{variable @w.momentum is the state of @layer, which is no parameter}}
train.variable @w.momentum : tensor<4xf32> state "momentum" of @layer

// -----

// Places and names of attributes are those of the dialect's table.
// expected-error @+1 {{attribute 'train.batch' belongs on a module}}
func.func private @f() attributes {train.batch = 4 : i64}

// -----

// expected-error @+1 {{attribute 'train.batch' is 0 : i64; expected an i64 from 1 on}}
module attributes {train.batch = 0 : i64} {}

// -----

// expected-error @+1 {{attribute 'train.inputs' of an argument is unknown; did you mean 'train.input'?}}
func.func private @f(tensor<4xf32> {train.inputs = "tokens"})

// -----

// expected-error @+1 {{attribute 'train.input' of a result belongs on an argument of a function}}
func.func private @f() -> (tensor<4xf32> {train.input = "tokens"})

// -----

// expected-error @+1 {{attribute 'meshwright.phase' is 3 : i64; expected a string}}
module attributes {meshwright.phase = 3 : i64} {}

// -----

func.func @iota() {
  // expected-error @+1 {{has no dimension -1 in 'tensor<4xi32>'}}
  %y = train.iota -1 : () -> tensor<4xi32>
  return
}

// -----

func.func @scatter(%x: tensor<2x3x4xf32>, %ids: tensor<2xi32>) {
  // expected-error @+1 {{cannot add rows of 'tensor<2x3x4xf32>' to those of 'tensor<8x4xf32>' that 'tensor<2xi32>' says}}
  %y = train.scatter_rows %x, %ids : (tensor<2x3x4xf32>, tensor<2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @halves(%x: tensor<3xf32>) {
  // expected-error @+1 {{needs an even last dimension, found 'tensor<3xf32>'}}
  %y = train.rotate_half %x : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @twice(%x: tensor<3xf32>) {
  // expected-error @+1 {{cannot make 'tensor<9xf32>' of 'tensor<3xf32>' twice}}
  %y = train.duplicate_half %x : (tensor<3xf32>) -> tensor<9xf32>
  return
}

// -----

// expected-error @+1 {{of less than 2^31 rows, found dim 0, offset 0 and full 4611686018427387904}}
train.variable @w : tensor<4xf32> init <"normal", 0.02> storage <"w", full = 4611686018427387904>

// -----

func.func @lengths(%q: tensor<1x8x2x4xf32>, %n: tensor<2xi32>) {
  // expected-error @+1 {{'train.attention' op needs lengths of [1] in 'i32', found 'tensor<2xi32>'}}
  %o, %l = train.attention %q, %q, %q lengths %n scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<2xi32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @distances(%q: tensor<1x8x2x4xf32>, %d: tensor<16x2xf32>) {
  // expected-error @+1 {{'train.attention' op needs distances of [15, 2] in 'f32', found 'tensor<16x2xf32>'}}
  %o, %l = train.attention %q, %q, %q distances %d scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<16x2xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @distances_of_a_part(%q: tensor<1x8x2x4xf32>, %d: tensor<23x2xf32>, %f: tensor<i32>) {
  // expected-error @+1 {{'train.attention' op takes distances with all keys and queries in a row alone}}
  %o, %l = train.attention %q, %q, %q key_offset %f distances %d scale 0.5 keys 16 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<i32>, tensor<23x2xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @buckets() {
  // expected-error @+1 {{'train.distance_buckets' op needs 4 buckets or more, found 2}}
  %o = train.distance_buckets 2 to 16 queries 4 keys 4 : tensor<7xi32>
  return
}

// -----

func.func @bucket_distances() {
  // expected-error @+1 {{'train.distance_buckets' op needs a largest distance above 16, that up to which each of its 32 buckets has one distance, found 16}}
  %o = train.distance_buckets 32 to 16 queries 4 keys 4 causal : tensor<7xi32>
  return
}

// -----

func.func @bucket_count() {
  // expected-error @+1 {{'train.distance_buckets' op gives the distances of 4 queries and 4 keys, which 'tensor<8xi32>' is not}}
  %o = train.distance_buckets 32 to 128 queries 4 keys 4 : tensor<8xi32>
  return
}
