"builtin.module"() <{sym_name = "jit_loss"}> ({
  "func.func"() <{function_type = (tensor<256x32xf32>, tensor<32x256xf32>, tensor<48x32xf32>, tensor<32x48xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32x48xf32>, tensor<32x16xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x16xf32>, tensor<48x32xf32>, tensor<32x48xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32x48xf32>, tensor<32x16xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x16xf32>, tensor<32xf32>, tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<f32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg8: tensor<256x32xf32> loc("params['embed']"), %arg9: tensor<32x256xf32> loc("params['head']"), %arg10: tensor<48x32xf32> loc("params['layers'][0]['down']"), %arg11: tensor<32x48xf32> loc("params['layers'][0]['gate']"), %arg12: tensor<32xf32> loc("params['layers'][0]['norm_1']"), %arg13: tensor<32xf32> loc("params['layers'][0]['norm_2']"), %arg14: tensor<32x48xf32> loc("params['layers'][0]['up']"), %arg15: tensor<32x16xf32> loc("params['layers'][0]['wk']"), %arg16: tensor<32x32xf32> loc("params['layers'][0]['wo']"), %arg17: tensor<32x32xf32> loc("params['layers'][0]['wq']"), %arg18: tensor<32x16xf32> loc("params['layers'][0]['wv']"), %arg19: tensor<48x32xf32> loc("params['layers'][1]['down']"), %arg20: tensor<32x48xf32> loc("params['layers'][1]['gate']"), %arg21: tensor<32xf32> loc("params['layers'][1]['norm_1']"), %arg22: tensor<32xf32> loc("params['layers'][1]['norm_2']"), %arg23: tensor<32x48xf32> loc("params['layers'][1]['up']"), %arg24: tensor<32x16xf32> loc("params['layers'][1]['wk']"), %arg25: tensor<32x32xf32> loc("params['layers'][1]['wo']"), %arg26: tensor<32x32xf32> loc("params['layers'][1]['wq']"), %arg27: tensor<32x16xf32> loc("params['layers'][1]['wv']"), %arg28: tensor<32xf32> loc("params['norm']"), %arg29: tensor<4x16xi32> loc("tokens"), %arg30: tensor<4x16xi32> loc("targets")):
    %36 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %37 = "stablehlo.broadcast_in_dim"(%36) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16xi32>
    %38 = "stablehlo.compare"(%arg29, %37) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi1>
    %39 = "stablehlo.constant"() <{value = dense<256> : tensor<i32>}> : () -> tensor<i32>
    %40 = "stablehlo.broadcast_in_dim"(%39) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16xi32>
    %41 = "stablehlo.add"(%arg29, %40) : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
    %42 = "stablehlo.select"(%38, %41, %arg29) : (tensor<4x16xi1>, tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
    %43 = "stablehlo.broadcast_in_dim"(%42) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %44 = "stablehlo.gather"(%arg8, %43) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 32>}> : (tensor<256x32xf32>, tensor<4x16x1xi32>) -> tensor<4x16x32xf32>
    %45 = "chlo.square"(%44) : (tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %46 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %47 = "stablehlo.reduce"(%45, %46) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg53: tensor<f32>, %arg54: tensor<f32>):
      %425 = "stablehlo.add"(%arg53, %arg54) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%425) : (tensor<f32>) -> ()
    }) : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %48 = "stablehlo.broadcast_in_dim"(%47) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %49 = "stablehlo.constant"() <{value = dense<3.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %50 = "stablehlo.broadcast_in_dim"(%49) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %51 = "stablehlo.divide"(%48, %50) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %52 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %53 = "stablehlo.broadcast_in_dim"(%52) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %54 = "stablehlo.add"(%51, %53) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %55 = "stablehlo.rsqrt"(%54) : (tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %56 = "stablehlo.broadcast_in_dim"(%55) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %57 = "stablehlo.multiply"(%44, %56) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %58 = "stablehlo.broadcast_in_dim"(%arg12) <{broadcast_dimensions = array<i64: 2>}> : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %59 = "stablehlo.broadcast_in_dim"(%58) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %60 = "stablehlo.multiply"(%57, %59) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %61 = "stablehlo.dot_general"(%60, %arg17) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %62 = "stablehlo.reshape"(%61) : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %63 = "stablehlo.dot_general"(%60, %arg15) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x16xf32>) -> tensor<4x16x16xf32>
    %64 = "stablehlo.reshape"(%63) : (tensor<4x16x16xf32>) -> tensor<4x16x2x8xf32>
    %65 = "stablehlo.dot_general"(%60, %arg18) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x16xf32>) -> tensor<4x16x16xf32>
    %66 = "stablehlo.reshape"(%65) : (tensor<4x16x16xf32>) -> tensor<4x16x2x8xf32>
    %67 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %68 = "stablehlo.broadcast_in_dim"(%67) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %69 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %70 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %71 = "stablehlo.broadcast_in_dim"(%70) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %72 = "stablehlo.multiply"(%71, %69) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %73 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %74 = "stablehlo.broadcast_in_dim"(%73) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %75 = "stablehlo.add"(%74, %72) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %76 = "stablehlo.negate"(%75) : (tensor<4xi32>) -> tensor<4xi32>
    %77 = "stablehlo.convert"(%76) : (tensor<4xi32>) -> tensor<4xf32>
    %78 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %79 = "stablehlo.broadcast_in_dim"(%78) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %80 = "stablehlo.divide"(%77, %79) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %81 = "stablehlo.constant"() <{value = dense<1.000000e+04> : tensor<f32>}> : () -> tensor<f32>
    %82 = "stablehlo.broadcast_in_dim"(%81) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %83 = "stablehlo.power"(%82, %80) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %84 = "stablehlo.convert"(%68) : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %85 = "stablehlo.broadcast_in_dim"(%83) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<1x4xf32>
    %86 = "stablehlo.broadcast_in_dim"(%84) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %87 = "stablehlo.broadcast_in_dim"(%85) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x4xf32>) -> tensor<16x4xf32>
    %88 = "stablehlo.multiply"(%86, %87) : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %89 = "stablehlo.cosine"(%88) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %90 = "stablehlo.broadcast_in_dim"(%89) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %91 = "stablehlo.sine"(%88) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %92 = "stablehlo.broadcast_in_dim"(%91) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %93 = "stablehlo.slice"(%62) <{limit_indices = array<i64: 4, 16, 4, 4>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<4x16x4x8xf32>) -> tensor<4x16x4x4xf32>
    %94 = "stablehlo.slice"(%62) <{limit_indices = array<i64: 4, 16, 4, 8>, start_indices = array<i64: 0, 0, 0, 4>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<4x16x4x8xf32>) -> tensor<4x16x4x4xf32>
    %95 = "stablehlo.broadcast_in_dim"(%90) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %96 = "stablehlo.broadcast_in_dim"(%95) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %97 = "stablehlo.multiply"(%93, %96) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %98 = "stablehlo.broadcast_in_dim"(%92) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %99 = "stablehlo.broadcast_in_dim"(%98) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %100 = "stablehlo.multiply"(%94, %99) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %101 = "stablehlo.subtract"(%97, %100) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %102 = "stablehlo.broadcast_in_dim"(%90) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %103 = "stablehlo.broadcast_in_dim"(%102) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %104 = "stablehlo.multiply"(%94, %103) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %105 = "stablehlo.broadcast_in_dim"(%92) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %106 = "stablehlo.broadcast_in_dim"(%105) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %107 = "stablehlo.multiply"(%93, %106) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %108 = "stablehlo.add"(%104, %107) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %109 = "stablehlo.concatenate"(%101, %108) <{dimension = 3 : i64}> : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x8xf32>
    %110 = "stablehlo.reshape"(%109) : (tensor<4x16x4x8xf32>) -> tensor<4x16x2x2x8xf32>
    %111 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %112 = "stablehlo.broadcast_in_dim"(%111) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %113 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %114 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %115 = "stablehlo.broadcast_in_dim"(%114) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %116 = "stablehlo.multiply"(%115, %113) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %117 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %118 = "stablehlo.broadcast_in_dim"(%117) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %119 = "stablehlo.add"(%118, %116) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %120 = "stablehlo.negate"(%119) : (tensor<4xi32>) -> tensor<4xi32>
    %121 = "stablehlo.convert"(%120) : (tensor<4xi32>) -> tensor<4xf32>
    %122 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %123 = "stablehlo.broadcast_in_dim"(%122) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %124 = "stablehlo.divide"(%121, %123) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %125 = "stablehlo.constant"() <{value = dense<1.000000e+04> : tensor<f32>}> : () -> tensor<f32>
    %126 = "stablehlo.broadcast_in_dim"(%125) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %127 = "stablehlo.power"(%126, %124) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %128 = "stablehlo.convert"(%112) : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %129 = "stablehlo.broadcast_in_dim"(%127) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<1x4xf32>
    %130 = "stablehlo.broadcast_in_dim"(%128) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %131 = "stablehlo.broadcast_in_dim"(%129) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x4xf32>) -> tensor<16x4xf32>
    %132 = "stablehlo.multiply"(%130, %131) : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %133 = "stablehlo.cosine"(%132) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %134 = "stablehlo.broadcast_in_dim"(%133) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %135 = "stablehlo.sine"(%132) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %136 = "stablehlo.broadcast_in_dim"(%135) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %137 = "stablehlo.slice"(%64) <{limit_indices = array<i64: 4, 16, 2, 4>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<4x16x2x8xf32>) -> tensor<4x16x2x4xf32>
    %138 = "stablehlo.slice"(%64) <{limit_indices = array<i64: 4, 16, 2, 8>, start_indices = array<i64: 0, 0, 0, 4>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<4x16x2x8xf32>) -> tensor<4x16x2x4xf32>
    %139 = "stablehlo.broadcast_in_dim"(%134) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %140 = "stablehlo.broadcast_in_dim"(%139) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %141 = "stablehlo.multiply"(%137, %140) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %142 = "stablehlo.broadcast_in_dim"(%136) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %143 = "stablehlo.broadcast_in_dim"(%142) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %144 = "stablehlo.multiply"(%138, %143) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %145 = "stablehlo.subtract"(%141, %144) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %146 = "stablehlo.broadcast_in_dim"(%134) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %147 = "stablehlo.broadcast_in_dim"(%146) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %148 = "stablehlo.multiply"(%138, %147) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %149 = "stablehlo.broadcast_in_dim"(%136) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %150 = "stablehlo.broadcast_in_dim"(%149) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %151 = "stablehlo.multiply"(%137, %150) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %152 = "stablehlo.add"(%148, %151) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %153 = "stablehlo.concatenate"(%145, %152) <{dimension = 3 : i64}> : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x8xf32>
    %154 = "stablehlo.dot_general"(%153, %110) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [4]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x2x8xf32>, tensor<4x16x2x2x8xf32>) -> tensor<4x2x16x16x2xf32>
    %155 = "stablehlo.transpose"(%154) <{permutation = array<i64: 0, 1, 4, 3, 2>}> : (tensor<4x2x16x16x2xf32>) -> tensor<4x2x2x16x16xf32>
    %156 = "stablehlo.constant"() <{value = dense<2.82842708> : tensor<f32>}> : () -> tensor<f32>
    %157 = "stablehlo.broadcast_in_dim"(%156) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %158 = "stablehlo.divide"(%155, %157) : (tensor<4x2x2x16x16xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x2x16x16xf32>
    %159 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %160 = "stablehlo.broadcast_in_dim"(%159) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %161 = "stablehlo.broadcast_in_dim"(%159) <{broadcast_dimensions = array<i64: 1>}> : (tensor<16xi32>) -> tensor<1x16xi32>
    %162 = "stablehlo.broadcast_in_dim"(%160) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xi32>) -> tensor<16x16xi32>
    %163 = "stablehlo.broadcast_in_dim"(%161) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x16xi32>) -> tensor<16x16xi32>
    %164 = "stablehlo.compare"(%162, %163) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %165 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %166 = "func.call"(%164, %158, %165) <{callee = @_where}> : (tensor<16x16xi1>, tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %167 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %168 = "stablehlo.reduce"(%166, %167) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg51: tensor<f32>, %arg52: tensor<f32>):
      %424 = "stablehlo.maximum"(%arg51, %arg52) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%424) : (tensor<f32>) -> ()
    }) : (tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16xf32>
    %169 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %170 = "stablehlo.broadcast_in_dim"(%169) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x2x2x16xf32>
    %171 = "stablehlo.maximum"(%170, %168) : (tensor<4x2x2x16xf32>, tensor<4x2x2x16xf32>) -> tensor<4x2x2x16xf32>
    %172 = "stablehlo.broadcast_in_dim"(%171) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x2x2x16xf32>) -> tensor<4x2x2x16x1xf32>
    %173 = "stablehlo.broadcast_in_dim"(%172) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<4x2x2x16x1xf32>) -> tensor<4x2x2x16x16xf32>
    %174 = "stablehlo.subtract"(%166, %173) : (tensor<4x2x2x16x16xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x2x16x16xf32>
    %175 = "stablehlo.exponential"(%174) : (tensor<4x2x2x16x16xf32>) -> tensor<4x2x2x16x16xf32>
    %176 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %177 = "stablehlo.reduce"(%175, %176) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg49: tensor<f32>, %arg50: tensor<f32>):
      %423 = "stablehlo.add"(%arg49, %arg50) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%423) : (tensor<f32>) -> ()
    }) : (tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16xf32>
    %178 = "stablehlo.broadcast_in_dim"(%177) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x2x2x16xf32>) -> tensor<4x2x2x16x1xf32>
    %179 = "stablehlo.broadcast_in_dim"(%178) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<4x2x2x16x1xf32>) -> tensor<4x2x2x16x16xf32>
    %180 = "stablehlo.divide"(%175, %179) : (tensor<4x2x2x16x16xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x2x16x16xf32>
    %181 = "stablehlo.dot_general"(%66, %180) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [4]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x2x8xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x8x2x16xf32>
    %182 = "stablehlo.transpose"(%181) <{permutation = array<i64: 0, 4, 1, 3, 2>}> : (tensor<4x2x8x2x16xf32>) -> tensor<4x16x2x2x8xf32>
    %183 = "stablehlo.reshape"(%182) : (tensor<4x16x2x2x8xf32>) -> tensor<4x16x32xf32>
    %184 = "stablehlo.dot_general"(%183, %arg16) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %185 = "stablehlo.add"(%44, %184) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %186 = "chlo.square"(%185) : (tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %187 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %188 = "stablehlo.reduce"(%186, %187) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg47: tensor<f32>, %arg48: tensor<f32>):
      %422 = "stablehlo.add"(%arg47, %arg48) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%422) : (tensor<f32>) -> ()
    }) : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %189 = "stablehlo.broadcast_in_dim"(%188) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %190 = "stablehlo.constant"() <{value = dense<3.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %191 = "stablehlo.broadcast_in_dim"(%190) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %192 = "stablehlo.divide"(%189, %191) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %193 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %194 = "stablehlo.broadcast_in_dim"(%193) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %195 = "stablehlo.add"(%192, %194) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %196 = "stablehlo.rsqrt"(%195) : (tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %197 = "stablehlo.broadcast_in_dim"(%196) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %198 = "stablehlo.multiply"(%185, %197) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %199 = "stablehlo.broadcast_in_dim"(%arg13) <{broadcast_dimensions = array<i64: 2>}> : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %200 = "stablehlo.broadcast_in_dim"(%199) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %201 = "stablehlo.multiply"(%198, %200) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %202 = "stablehlo.dot_general"(%201, %arg11) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x48xf32>) -> tensor<4x16x48xf32>
    %203 = "func.call"(%202) <{callee = @silu}> : (tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %204 = "stablehlo.dot_general"(%201, %arg14) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x48xf32>) -> tensor<4x16x48xf32>
    %205 = "stablehlo.multiply"(%203, %204) : (tensor<4x16x48xf32>, tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %206 = "stablehlo.dot_general"(%205, %arg10) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x48xf32>, tensor<48x32xf32>) -> tensor<4x16x32xf32>
    %207 = "stablehlo.add"(%185, %206) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %208 = "chlo.square"(%207) : (tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %209 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %210 = "stablehlo.reduce"(%208, %209) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg45: tensor<f32>, %arg46: tensor<f32>):
      %421 = "stablehlo.add"(%arg45, %arg46) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%421) : (tensor<f32>) -> ()
    }) : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %211 = "stablehlo.broadcast_in_dim"(%210) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %212 = "stablehlo.constant"() <{value = dense<3.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %213 = "stablehlo.broadcast_in_dim"(%212) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %214 = "stablehlo.divide"(%211, %213) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %215 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %216 = "stablehlo.broadcast_in_dim"(%215) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %217 = "stablehlo.add"(%214, %216) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %218 = "stablehlo.rsqrt"(%217) : (tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %219 = "stablehlo.broadcast_in_dim"(%218) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %220 = "stablehlo.multiply"(%207, %219) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %221 = "stablehlo.broadcast_in_dim"(%arg21) <{broadcast_dimensions = array<i64: 2>}> : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %222 = "stablehlo.broadcast_in_dim"(%221) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %223 = "stablehlo.multiply"(%220, %222) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %224 = "stablehlo.dot_general"(%223, %arg26) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %225 = "stablehlo.reshape"(%224) : (tensor<4x16x32xf32>) -> tensor<4x16x4x8xf32>
    %226 = "stablehlo.dot_general"(%223, %arg24) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x16xf32>) -> tensor<4x16x16xf32>
    %227 = "stablehlo.reshape"(%226) : (tensor<4x16x16xf32>) -> tensor<4x16x2x8xf32>
    %228 = "stablehlo.dot_general"(%223, %arg27) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x16xf32>) -> tensor<4x16x16xf32>
    %229 = "stablehlo.reshape"(%228) : (tensor<4x16x16xf32>) -> tensor<4x16x2x8xf32>
    %230 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %231 = "stablehlo.broadcast_in_dim"(%230) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %232 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %233 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %234 = "stablehlo.broadcast_in_dim"(%233) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %235 = "stablehlo.multiply"(%234, %232) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %236 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %237 = "stablehlo.broadcast_in_dim"(%236) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %238 = "stablehlo.add"(%237, %235) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %239 = "stablehlo.negate"(%238) : (tensor<4xi32>) -> tensor<4xi32>
    %240 = "stablehlo.convert"(%239) : (tensor<4xi32>) -> tensor<4xf32>
    %241 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %242 = "stablehlo.broadcast_in_dim"(%241) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %243 = "stablehlo.divide"(%240, %242) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %244 = "stablehlo.constant"() <{value = dense<1.000000e+04> : tensor<f32>}> : () -> tensor<f32>
    %245 = "stablehlo.broadcast_in_dim"(%244) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %246 = "stablehlo.power"(%245, %243) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %247 = "stablehlo.convert"(%231) : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %248 = "stablehlo.broadcast_in_dim"(%246) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<1x4xf32>
    %249 = "stablehlo.broadcast_in_dim"(%247) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %250 = "stablehlo.broadcast_in_dim"(%248) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x4xf32>) -> tensor<16x4xf32>
    %251 = "stablehlo.multiply"(%249, %250) : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %252 = "stablehlo.cosine"(%251) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %253 = "stablehlo.broadcast_in_dim"(%252) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %254 = "stablehlo.sine"(%251) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %255 = "stablehlo.broadcast_in_dim"(%254) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %256 = "stablehlo.slice"(%225) <{limit_indices = array<i64: 4, 16, 4, 4>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<4x16x4x8xf32>) -> tensor<4x16x4x4xf32>
    %257 = "stablehlo.slice"(%225) <{limit_indices = array<i64: 4, 16, 4, 8>, start_indices = array<i64: 0, 0, 0, 4>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<4x16x4x8xf32>) -> tensor<4x16x4x4xf32>
    %258 = "stablehlo.broadcast_in_dim"(%253) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %259 = "stablehlo.broadcast_in_dim"(%258) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %260 = "stablehlo.multiply"(%256, %259) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %261 = "stablehlo.broadcast_in_dim"(%255) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %262 = "stablehlo.broadcast_in_dim"(%261) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %263 = "stablehlo.multiply"(%257, %262) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %264 = "stablehlo.subtract"(%260, %263) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %265 = "stablehlo.broadcast_in_dim"(%253) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %266 = "stablehlo.broadcast_in_dim"(%265) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %267 = "stablehlo.multiply"(%257, %266) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %268 = "stablehlo.broadcast_in_dim"(%255) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %269 = "stablehlo.broadcast_in_dim"(%268) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x4x4xf32>
    %270 = "stablehlo.multiply"(%256, %269) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %271 = "stablehlo.add"(%267, %270) : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x4xf32>
    %272 = "stablehlo.concatenate"(%264, %271) <{dimension = 3 : i64}> : (tensor<4x16x4x4xf32>, tensor<4x16x4x4xf32>) -> tensor<4x16x4x8xf32>
    %273 = "stablehlo.reshape"(%272) : (tensor<4x16x4x8xf32>) -> tensor<4x16x2x2x8xf32>
    %274 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %275 = "stablehlo.broadcast_in_dim"(%274) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %276 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %277 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %278 = "stablehlo.broadcast_in_dim"(%277) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %279 = "stablehlo.multiply"(%278, %276) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %280 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %281 = "stablehlo.broadcast_in_dim"(%280) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %282 = "stablehlo.add"(%281, %279) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %283 = "stablehlo.negate"(%282) : (tensor<4xi32>) -> tensor<4xi32>
    %284 = "stablehlo.convert"(%283) : (tensor<4xi32>) -> tensor<4xf32>
    %285 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %286 = "stablehlo.broadcast_in_dim"(%285) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %287 = "stablehlo.divide"(%284, %286) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %288 = "stablehlo.constant"() <{value = dense<1.000000e+04> : tensor<f32>}> : () -> tensor<f32>
    %289 = "stablehlo.broadcast_in_dim"(%288) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %290 = "stablehlo.power"(%289, %287) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %291 = "stablehlo.convert"(%275) : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %292 = "stablehlo.broadcast_in_dim"(%290) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<1x4xf32>
    %293 = "stablehlo.broadcast_in_dim"(%291) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %294 = "stablehlo.broadcast_in_dim"(%292) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x4xf32>) -> tensor<16x4xf32>
    %295 = "stablehlo.multiply"(%293, %294) : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %296 = "stablehlo.cosine"(%295) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %297 = "stablehlo.broadcast_in_dim"(%296) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %298 = "stablehlo.sine"(%295) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %299 = "stablehlo.broadcast_in_dim"(%298) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<16x4xf32>) -> tensor<16x1x4xf32>
    %300 = "stablehlo.slice"(%227) <{limit_indices = array<i64: 4, 16, 2, 4>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<4x16x2x8xf32>) -> tensor<4x16x2x4xf32>
    %301 = "stablehlo.slice"(%227) <{limit_indices = array<i64: 4, 16, 2, 8>, start_indices = array<i64: 0, 0, 0, 4>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<4x16x2x8xf32>) -> tensor<4x16x2x4xf32>
    %302 = "stablehlo.broadcast_in_dim"(%297) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %303 = "stablehlo.broadcast_in_dim"(%302) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %304 = "stablehlo.multiply"(%300, %303) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %305 = "stablehlo.broadcast_in_dim"(%299) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %306 = "stablehlo.broadcast_in_dim"(%305) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %307 = "stablehlo.multiply"(%301, %306) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %308 = "stablehlo.subtract"(%304, %307) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %309 = "stablehlo.broadcast_in_dim"(%297) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %310 = "stablehlo.broadcast_in_dim"(%309) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %311 = "stablehlo.multiply"(%301, %310) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %312 = "stablehlo.broadcast_in_dim"(%299) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<16x1x4xf32>) -> tensor<1x16x1x4xf32>
    %313 = "stablehlo.broadcast_in_dim"(%312) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x16x1x4xf32>) -> tensor<4x16x2x4xf32>
    %314 = "stablehlo.multiply"(%300, %313) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %315 = "stablehlo.add"(%311, %314) : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x4xf32>
    %316 = "stablehlo.concatenate"(%308, %315) <{dimension = 3 : i64}> : (tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>) -> tensor<4x16x2x8xf32>
    %317 = "stablehlo.dot_general"(%316, %273) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [4]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x2x8xf32>, tensor<4x16x2x2x8xf32>) -> tensor<4x2x16x16x2xf32>
    %318 = "stablehlo.transpose"(%317) <{permutation = array<i64: 0, 1, 4, 3, 2>}> : (tensor<4x2x16x16x2xf32>) -> tensor<4x2x2x16x16xf32>
    %319 = "stablehlo.constant"() <{value = dense<2.82842708> : tensor<f32>}> : () -> tensor<f32>
    %320 = "stablehlo.broadcast_in_dim"(%319) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %321 = "stablehlo.divide"(%318, %320) : (tensor<4x2x2x16x16xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x2x16x16xf32>
    %322 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %323 = "stablehlo.broadcast_in_dim"(%322) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %324 = "stablehlo.broadcast_in_dim"(%322) <{broadcast_dimensions = array<i64: 1>}> : (tensor<16xi32>) -> tensor<1x16xi32>
    %325 = "stablehlo.broadcast_in_dim"(%323) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xi32>) -> tensor<16x16xi32>
    %326 = "stablehlo.broadcast_in_dim"(%324) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x16xi32>) -> tensor<16x16xi32>
    %327 = "stablehlo.compare"(%325, %326) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %328 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %329 = "func.call"(%327, %321, %328) <{callee = @_where}> : (tensor<16x16xi1>, tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %330 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %331 = "stablehlo.reduce"(%329, %330) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg43: tensor<f32>, %arg44: tensor<f32>):
      %420 = "stablehlo.maximum"(%arg43, %arg44) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%420) : (tensor<f32>) -> ()
    }) : (tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16xf32>
    %332 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %333 = "stablehlo.broadcast_in_dim"(%332) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x2x2x16xf32>
    %334 = "stablehlo.maximum"(%333, %331) : (tensor<4x2x2x16xf32>, tensor<4x2x2x16xf32>) -> tensor<4x2x2x16xf32>
    %335 = "stablehlo.broadcast_in_dim"(%334) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x2x2x16xf32>) -> tensor<4x2x2x16x1xf32>
    %336 = "stablehlo.broadcast_in_dim"(%335) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<4x2x2x16x1xf32>) -> tensor<4x2x2x16x16xf32>
    %337 = "stablehlo.subtract"(%329, %336) : (tensor<4x2x2x16x16xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x2x16x16xf32>
    %338 = "stablehlo.exponential"(%337) : (tensor<4x2x2x16x16xf32>) -> tensor<4x2x2x16x16xf32>
    %339 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %340 = "stablehlo.reduce"(%338, %339) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg41: tensor<f32>, %arg42: tensor<f32>):
      %419 = "stablehlo.add"(%arg41, %arg42) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%419) : (tensor<f32>) -> ()
    }) : (tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16xf32>
    %341 = "stablehlo.broadcast_in_dim"(%340) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x2x2x16xf32>) -> tensor<4x2x2x16x1xf32>
    %342 = "stablehlo.broadcast_in_dim"(%341) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<4x2x2x16x1xf32>) -> tensor<4x2x2x16x16xf32>
    %343 = "stablehlo.divide"(%338, %342) : (tensor<4x2x2x16x16xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x2x16x16xf32>
    %344 = "stablehlo.dot_general"(%229, %343) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [4]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x2x8xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x8x2x16xf32>
    %345 = "stablehlo.transpose"(%344) <{permutation = array<i64: 0, 4, 1, 3, 2>}> : (tensor<4x2x8x2x16xf32>) -> tensor<4x16x2x2x8xf32>
    %346 = "stablehlo.reshape"(%345) : (tensor<4x16x2x2x8xf32>) -> tensor<4x16x32xf32>
    %347 = "stablehlo.dot_general"(%346, %arg25) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x32xf32>) -> tensor<4x16x32xf32>
    %348 = "stablehlo.add"(%207, %347) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %349 = "chlo.square"(%348) : (tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %350 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %351 = "stablehlo.reduce"(%349, %350) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg39: tensor<f32>, %arg40: tensor<f32>):
      %418 = "stablehlo.add"(%arg39, %arg40) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%418) : (tensor<f32>) -> ()
    }) : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %352 = "stablehlo.broadcast_in_dim"(%351) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %353 = "stablehlo.constant"() <{value = dense<3.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %354 = "stablehlo.broadcast_in_dim"(%353) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %355 = "stablehlo.divide"(%352, %354) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %356 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %357 = "stablehlo.broadcast_in_dim"(%356) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %358 = "stablehlo.add"(%355, %357) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %359 = "stablehlo.rsqrt"(%358) : (tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %360 = "stablehlo.broadcast_in_dim"(%359) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %361 = "stablehlo.multiply"(%348, %360) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %362 = "stablehlo.broadcast_in_dim"(%arg22) <{broadcast_dimensions = array<i64: 2>}> : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %363 = "stablehlo.broadcast_in_dim"(%362) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %364 = "stablehlo.multiply"(%361, %363) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %365 = "stablehlo.dot_general"(%364, %arg20) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x48xf32>) -> tensor<4x16x48xf32>
    %366 = "func.call"(%365) <{callee = @silu}> : (tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %367 = "stablehlo.dot_general"(%364, %arg23) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x48xf32>) -> tensor<4x16x48xf32>
    %368 = "stablehlo.multiply"(%366, %367) : (tensor<4x16x48xf32>, tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %369 = "stablehlo.dot_general"(%368, %arg19) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x48xf32>, tensor<48x32xf32>) -> tensor<4x16x32xf32>
    %370 = "stablehlo.add"(%348, %369) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %371 = "chlo.square"(%370) : (tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %372 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %373 = "stablehlo.reduce"(%371, %372) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg37: tensor<f32>, %arg38: tensor<f32>):
      %417 = "stablehlo.add"(%arg37, %arg38) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%417) : (tensor<f32>) -> ()
    }) : (tensor<4x16x32xf32>, tensor<f32>) -> tensor<4x16xf32>
    %374 = "stablehlo.broadcast_in_dim"(%373) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %375 = "stablehlo.constant"() <{value = dense<3.200000e+01> : tensor<f32>}> : () -> tensor<f32>
    %376 = "stablehlo.broadcast_in_dim"(%375) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %377 = "stablehlo.divide"(%374, %376) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %378 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %379 = "stablehlo.broadcast_in_dim"(%378) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %380 = "stablehlo.add"(%377, %379) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %381 = "stablehlo.rsqrt"(%380) : (tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %382 = "stablehlo.broadcast_in_dim"(%381) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x32xf32>
    %383 = "stablehlo.multiply"(%370, %382) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %384 = "stablehlo.broadcast_in_dim"(%arg28) <{broadcast_dimensions = array<i64: 2>}> : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %385 = "stablehlo.broadcast_in_dim"(%384) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x32xf32>) -> tensor<4x16x32xf32>
    %386 = "stablehlo.multiply"(%383, %385) : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %387 = "stablehlo.dot_general"(%386, %arg9) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x32xf32>, tensor<32x256xf32>) -> tensor<4x16x256xf32>
    %388 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %389 = "stablehlo.reduce"(%387, %388) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg35: tensor<f32>, %arg36: tensor<f32>):
      %416 = "stablehlo.maximum"(%arg35, %arg36) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%416) : (tensor<f32>) -> ()
    }) : (tensor<4x16x256xf32>, tensor<f32>) -> tensor<4x16xf32>
    %390 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %391 = "stablehlo.broadcast_in_dim"(%390) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16xf32>
    %392 = "stablehlo.maximum"(%391, %389) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %393 = "stablehlo.is_finite"(%392) : (tensor<4x16xf32>) -> tensor<4x16xi1>
    %394 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %395 = "stablehlo.broadcast_in_dim"(%394) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16xf32>
    %396 = "stablehlo.select"(%393, %392, %395) : (tensor<4x16xi1>, tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %397 = "stablehlo.broadcast_in_dim"(%396) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %398 = "stablehlo.broadcast_in_dim"(%397) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x256xf32>
    %399 = "stablehlo.subtract"(%387, %398) : (tensor<4x16x256xf32>, tensor<4x16x256xf32>) -> tensor<4x16x256xf32>
    %400 = "stablehlo.exponential"(%399) : (tensor<4x16x256xf32>) -> tensor<4x16x256xf32>
    %401 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %402 = "stablehlo.reduce"(%400, %401) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg33: tensor<f32>, %arg34: tensor<f32>):
      %415 = "stablehlo.add"(%arg33, %arg34) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%415) : (tensor<f32>) -> ()
    }) : (tensor<4x16x256xf32>, tensor<f32>) -> tensor<4x16xf32>
    %403 = "stablehlo.abs"(%402) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %404 = "stablehlo.log"(%403) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %405 = "stablehlo.add"(%404, %396) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %406 = "stablehlo.broadcast_in_dim"(%arg30) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %407 = "func.call"(%387, %406) <{callee = @take_along_axis}> : (tensor<4x16x256xf32>, tensor<4x16x1xi32>) -> tensor<4x16x1xf32>
    %408 = "stablehlo.reshape"(%407) : (tensor<4x16x1xf32>) -> tensor<4x16xf32>
    %409 = "stablehlo.subtract"(%405, %408) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %410 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %411 = "stablehlo.reduce"(%409, %410) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg31: tensor<f32>, %arg32: tensor<f32>):
      %414 = "stablehlo.add"(%arg31, %arg32) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%414) : (tensor<f32>) -> ()
    }) : (tensor<4x16xf32>, tensor<f32>) -> tensor<f32>
    %412 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %413 = "stablehlo.divide"(%411, %412) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "func.return"(%413) : (tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<16x16xi1>, tensor<4x2x2x16x16xf32>, tensor<f32>) -> tensor<4x2x2x16x16xf32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg5: tensor<16x16xi1>, %arg6: tensor<4x2x2x16x16xf32>, %arg7: tensor<f32>):
    %32 = "stablehlo.convert"(%arg7) : (tensor<f32>) -> tensor<f32>
    %33 = "stablehlo.broadcast_in_dim"(%arg5) <{broadcast_dimensions = array<i64: 3, 4>}> : (tensor<16x16xi1>) -> tensor<4x2x2x16x16xi1>
    %34 = "stablehlo.broadcast_in_dim"(%32) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x2x2x16x16xf32>
    %35 = "stablehlo.select"(%33, %arg6, %34) : (tensor<4x2x2x16x16xi1>, tensor<4x2x2x16x16xf32>, tensor<4x2x2x16x16xf32>) -> tensor<4x2x2x16x16xf32>
    "func.return"(%35) : (tensor<4x2x2x16x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x16x48xf32>) -> tensor<4x16x48xf32>, sym_name = "silu", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<4x16x48xf32>):
    %23 = "stablehlo.negate"(%arg4) : (tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %24 = "stablehlo.exponential"(%23) : (tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %25 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %26 = "stablehlo.broadcast_in_dim"(%25) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x48xf32>
    %27 = "stablehlo.add"(%26, %24) : (tensor<4x16x48xf32>, tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %28 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %29 = "stablehlo.broadcast_in_dim"(%28) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x48xf32>
    %30 = "stablehlo.divide"(%29, %27) : (tensor<4x16x48xf32>, tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    %31 = "stablehlo.multiply"(%arg4, %30) : (tensor<4x16x48xf32>, tensor<4x16x48xf32>) -> tensor<4x16x48xf32>
    "func.return"(%31) : (tensor<4x16x48xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x16x256xf32>, tensor<4x16x1xi32>) -> tensor<4x16x1xf32>, sym_name = "take_along_axis", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<4x16x256xf32>, %arg1: tensor<4x16x1xi32>):
    %0 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16x1xi32>
    %2 = "stablehlo.compare"(%arg1, %1) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %3 = "stablehlo.constant"() <{value = dense<256> : tensor<i32>}> : () -> tensor<i32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16x1xi32>
    %5 = "stablehlo.add"(%arg1, %4) : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi32>
    %6 = "stablehlo.select"(%2, %5, %arg1) : (tensor<4x16x1xi1>, tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi32>
    %7 = "stablehlo.reshape"(%6) : (tensor<4x16x1xi32>) -> tensor<4x16x1x1xi32>
    %8 = "stablehlo.constant"() <{value = dense<255> : tensor<1xi32>}> : () -> tensor<1xi32>
    %9 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %10 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16x1x1xi32>
    %11 = "stablehlo.compare"(%7, %10) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<4x16x1x1xi32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1x1xi1>
    %12 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64: 3>}> : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x1x1xi32>) -> tensor<4x16x1x1xi32>
    %14 = "stablehlo.compare"(%7, %13) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<4x16x1x1xi32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1x1xi1>
    %15 = "stablehlo.and"(%11, %14) : (tensor<4x16x1x1xi1>, tensor<4x16x1x1xi1>) -> tensor<4x16x1x1xi1>
    %16 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %17 = "stablehlo.reduce"(%15, %16) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg2: tensor<i1> loc("reduce_and"), %arg3: tensor<i1> loc("reduce_and")):
      %22 = "stablehlo.and"(%arg2, %arg3) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%22) : (tensor<i1>) -> ()
    }) : (tensor<4x16x1x1xi1>, tensor<i1>) -> tensor<4x16x1xi1>
    %18 = "stablehlo.gather"(%arg0, %7) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x16x256xf32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1xf32>
    %19 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %20 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %21 = "stablehlo.select"(%17, %18, %20) : (tensor<4x16x1xi1>, tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    "func.return"(%21) : (tensor<4x16x1xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
