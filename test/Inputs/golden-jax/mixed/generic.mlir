"builtin.module"() <{sym_name = "jit_loss"}> ({
  "func.func"() <{function_type = (tensor<16xf32>, tensor<24x16xf32>, tensor<16x24xf32>, tensor<4x4x16xf32>, tensor<16x32xf32>, tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<256x16xf32>, tensor<4x17xi32>) -> tensor<f32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg25: tensor<16xf32> loc("params['layers'][0]['bias']"), %arg26: tensor<24x16xf32> loc("params['layers'][0]['down']"), %arg27: tensor<16x24xf32> loc("params['layers'][0]['gate']"), %arg28: tensor<4x4x16xf32> loc("params['layers'][0]['out']"), %arg29: tensor<16x32xf32> loc("params['layers'][0]['qkv']"), %arg30: tensor<16x24xf32> loc("params['layers'][0]['up']"), %arg31: tensor<16xf32> loc("params['norm']['bias']"), %arg32: tensor<16xf32> loc("params['norm']['gain']"), %arg33: tensor<16x16xf32> loc("params['wpe']"), %arg34: tensor<256x16xf32> loc("params['wte']"), %arg35: tensor<4x17xi32> loc("tokens")):
    %93 = "stablehlo.slice"(%arg35) <{limit_indices = array<i64: 4, 16>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %94 = "func.call"(%arg34, %93) <{callee = @_take}> : (tensor<256x16xf32>, tensor<4x16xi32>) -> tensor<4x16x16xf32>
    %95 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %96 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %97 = "stablehlo.broadcast_in_dim"(%96) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<16xi32>
    %98 = "stablehlo.compare"(%95, %97) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %99 = "stablehlo.constant"() <{value = dense<16> : tensor<i32>}> : () -> tensor<i32>
    %100 = "stablehlo.broadcast_in_dim"(%99) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<16xi32>
    %101 = "stablehlo.add"(%95, %100) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %102 = "stablehlo.select"(%98, %101, %95) : (tensor<16xi1>, tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %103 = "stablehlo.broadcast_in_dim"(%102) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %104 = "stablehlo.gather"(%arg33, %103) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<16x16xf32>, tensor<16x1xi32>) -> tensor<16x16xf32>
    %105 = "stablehlo.broadcast_in_dim"(%104) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x16xf32>) -> tensor<1x16x16xf32>
    %106 = "stablehlo.broadcast_in_dim"(%105) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x16x16xf32>) -> tensor<4x16x16xf32>
    %107 = "stablehlo.add"(%94, %106) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %108 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %109 = "stablehlo.reduce"(%107, %108) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg48: tensor<f32>, %arg49: tensor<f32>):
      %349 = "stablehlo.add"(%arg48, %arg49) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%349) : (tensor<f32>) -> ()
    }) : (tensor<4x16x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %110 = "stablehlo.broadcast_in_dim"(%109) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %111 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %112 = "stablehlo.broadcast_in_dim"(%111) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %113 = "stablehlo.divide"(%110, %112) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %114 = "stablehlo.broadcast_in_dim"(%113) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %115 = "stablehlo.subtract"(%107, %114) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %116 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %117 = "func.call"(%107, %116) <{callee = @_var}> : (tensor<4x16x16xf32>, tensor<i32>) -> tensor<4x16x1xf32>
    %118 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %119 = "stablehlo.broadcast_in_dim"(%118) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %120 = "stablehlo.add"(%117, %119) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %121 = "stablehlo.rsqrt"(%120) : (tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %122 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %123 = "stablehlo.multiply"(%115, %122) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %124 = "stablehlo.broadcast_in_dim"(%arg32) <{broadcast_dimensions = array<i64: 1>}> : (tensor<16xf32>) -> tensor<1x16xf32>
    %125 = "stablehlo.broadcast_in_dim"(%124) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %126 = "stablehlo.broadcast_in_dim"(%125) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %127 = "stablehlo.multiply"(%123, %126) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %128 = "stablehlo.broadcast_in_dim"(%arg31) <{broadcast_dimensions = array<i64: 1>}> : (tensor<16xf32>) -> tensor<1x16xf32>
    %129 = "stablehlo.broadcast_in_dim"(%128) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %130 = "stablehlo.broadcast_in_dim"(%129) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %131 = "stablehlo.add"(%127, %130) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %132 = "stablehlo.dot_general"(%131, %arg29) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x16xf32>, tensor<16x32xf32>) -> tensor<4x16x32xf32>
    %133 = "stablehlo.slice"(%132) <{limit_indices = array<i64: 4, 16, 16>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<4x16x32xf32>) -> tensor<4x16x16xf32>
    %134 = "stablehlo.slice"(%132) <{limit_indices = array<i64: 4, 16, 24>, start_indices = array<i64: 0, 0, 16>, strides = array<i64: 1, 1, 1>}> : (tensor<4x16x32xf32>) -> tensor<4x16x8xf32>
    %135 = "stablehlo.slice"(%132) <{limit_indices = array<i64: 4, 16, 32>, start_indices = array<i64: 0, 0, 24>, strides = array<i64: 1, 1, 1>}> : (tensor<4x16x32xf32>) -> tensor<4x16x8xf32>
    %136 = "stablehlo.reshape"(%133) : (tensor<4x16x16xf32>) -> tensor<4x16x4x4xf32>
    %137 = "stablehlo.transpose"(%136) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<4x16x4x4xf32>) -> tensor<4x4x16x4xf32>
    %138 = "stablehlo.reshape"(%134) : (tensor<4x16x8xf32>) -> tensor<4x16x2x4xf32>
    %139 = "stablehlo.transpose"(%138) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<4x16x2x4xf32>) -> tensor<4x2x16x4xf32>
    %140 = "stablehlo.reshape"(%135) : (tensor<4x16x8xf32>) -> tensor<4x16x2x4xf32>
    %141 = "stablehlo.transpose"(%140) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<4x16x2x4xf32>) -> tensor<4x2x16x4xf32>
    %142 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %143 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2xi32>
    %144 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %145 = "stablehlo.broadcast_in_dim"(%144) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %146 = "stablehlo.multiply"(%145, %143) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %147 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %148 = "stablehlo.broadcast_in_dim"(%147) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %149 = "stablehlo.add"(%148, %146) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %150 = "stablehlo.convert"(%149) : (tensor<2xi32>) -> tensor<2xf32>
    %151 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %152 = "stablehlo.broadcast_in_dim"(%151) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %153 = "stablehlo.divide"(%150, %152) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %154 = "stablehlo.constant"() <{value = dense<1.000000e+02> : tensor<f32>}> : () -> tensor<f32>
    %155 = "stablehlo.broadcast_in_dim"(%154) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %156 = "stablehlo.power"(%155, %153) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %157 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %158 = "stablehlo.broadcast_in_dim"(%157) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %159 = "stablehlo.divide"(%158, %156) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %160 = "stablehlo.convert"(%142) : (tensor<16xi32>) -> tensor<16xf32>
    %161 = "stablehlo.broadcast_in_dim"(%160) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xf32>) -> tensor<16x1xf32>
    %162 = "stablehlo.broadcast_in_dim"(%159) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xf32>) -> tensor<1x2xf32>
    %163 = "stablehlo.broadcast_in_dim"(%161) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xf32>) -> tensor<16x2xf32>
    %164 = "stablehlo.broadcast_in_dim"(%162) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x2xf32>) -> tensor<16x2xf32>
    %165 = "stablehlo.multiply"(%163, %164) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
    %166 = "stablehlo.slice"(%139) <{limit_indices = array<i64: 4, 2, 16, 4>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 2>}> : (tensor<4x2x16x4xf32>) -> tensor<4x2x16x2xf32>
    %167 = "stablehlo.slice"(%139) <{limit_indices = array<i64: 4, 2, 16, 4>, start_indices = array<i64: 0, 0, 0, 1>, strides = array<i64: 1, 1, 1, 2>}> : (tensor<4x2x16x4xf32>) -> tensor<4x2x16x2xf32>
    %168 = "stablehlo.cosine"(%165) : (tensor<16x2xf32>) -> tensor<16x2xf32>
    %169 = "stablehlo.sine"(%165) : (tensor<16x2xf32>) -> tensor<16x2xf32>
    %170 = "stablehlo.broadcast_in_dim"(%168) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %171 = "stablehlo.broadcast_in_dim"(%170) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %172 = "stablehlo.broadcast_in_dim"(%171) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %173 = "stablehlo.multiply"(%166, %172) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %174 = "stablehlo.broadcast_in_dim"(%169) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %175 = "stablehlo.broadcast_in_dim"(%174) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %176 = "stablehlo.broadcast_in_dim"(%175) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %177 = "stablehlo.multiply"(%167, %176) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %178 = "stablehlo.subtract"(%173, %177) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %179 = "stablehlo.broadcast_in_dim"(%169) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %180 = "stablehlo.broadcast_in_dim"(%179) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %181 = "stablehlo.broadcast_in_dim"(%180) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %182 = "stablehlo.multiply"(%166, %181) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %183 = "stablehlo.broadcast_in_dim"(%168) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %184 = "stablehlo.broadcast_in_dim"(%183) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %185 = "stablehlo.broadcast_in_dim"(%184) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %186 = "stablehlo.multiply"(%167, %185) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %187 = "stablehlo.add"(%182, %186) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %188 = "stablehlo.broadcast_in_dim"(%178) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x2x16x2xf32>) -> tensor<4x2x16x2x1xf32>
    %189 = "stablehlo.broadcast_in_dim"(%187) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x2x16x2xf32>) -> tensor<4x2x16x2x1xf32>
    %190 = "stablehlo.concatenate"(%188, %189) <{dimension = 4 : i64}> : (tensor<4x2x16x2x1xf32>, tensor<4x2x16x2x1xf32>) -> tensor<4x2x16x2x2xf32>
    %191 = "stablehlo.reshape"(%190) : (tensor<4x2x16x2x2xf32>) -> tensor<4x2x16x4xf32>
    %192 = "stablehlo.broadcast_in_dim"(%191) <{broadcast_dimensions = array<i64: 0, 1, 3, 4>}> : (tensor<4x2x16x4xf32>) -> tensor<4x2x2x16x4xf32>
    %193 = "stablehlo.reshape"(%192) : (tensor<4x2x2x16x4xf32>) -> tensor<4x4x16x4xf32>
    %194 = "stablehlo.broadcast_in_dim"(%141) <{broadcast_dimensions = array<i64: 0, 1, 3, 4>}> : (tensor<4x2x16x4xf32>) -> tensor<4x2x2x16x4xf32>
    %195 = "stablehlo.reshape"(%194) : (tensor<4x2x2x16x4xf32>) -> tensor<4x4x16x4xf32>
    %196 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %197 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2xi32>
    %198 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %199 = "stablehlo.broadcast_in_dim"(%198) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %200 = "stablehlo.multiply"(%199, %197) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %201 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %202 = "stablehlo.broadcast_in_dim"(%201) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %203 = "stablehlo.add"(%202, %200) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %204 = "stablehlo.convert"(%203) : (tensor<2xi32>) -> tensor<2xf32>
    %205 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %206 = "stablehlo.broadcast_in_dim"(%205) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %207 = "stablehlo.divide"(%204, %206) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %208 = "stablehlo.constant"() <{value = dense<1.000000e+02> : tensor<f32>}> : () -> tensor<f32>
    %209 = "stablehlo.broadcast_in_dim"(%208) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %210 = "stablehlo.power"(%209, %207) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %211 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %212 = "stablehlo.broadcast_in_dim"(%211) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %213 = "stablehlo.divide"(%212, %210) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %214 = "stablehlo.convert"(%196) : (tensor<16xi32>) -> tensor<16xf32>
    %215 = "stablehlo.broadcast_in_dim"(%214) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xf32>) -> tensor<16x1xf32>
    %216 = "stablehlo.broadcast_in_dim"(%213) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xf32>) -> tensor<1x2xf32>
    %217 = "stablehlo.broadcast_in_dim"(%215) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xf32>) -> tensor<16x2xf32>
    %218 = "stablehlo.broadcast_in_dim"(%216) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x2xf32>) -> tensor<16x2xf32>
    %219 = "stablehlo.multiply"(%217, %218) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
    %220 = "stablehlo.slice"(%137) <{limit_indices = array<i64: 4, 4, 16, 4>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 2>}> : (tensor<4x4x16x4xf32>) -> tensor<4x4x16x2xf32>
    %221 = "stablehlo.slice"(%137) <{limit_indices = array<i64: 4, 4, 16, 4>, start_indices = array<i64: 0, 0, 0, 1>, strides = array<i64: 1, 1, 1, 2>}> : (tensor<4x4x16x4xf32>) -> tensor<4x4x16x2xf32>
    %222 = "stablehlo.cosine"(%219) : (tensor<16x2xf32>) -> tensor<16x2xf32>
    %223 = "stablehlo.sine"(%219) : (tensor<16x2xf32>) -> tensor<16x2xf32>
    %224 = "stablehlo.broadcast_in_dim"(%222) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %225 = "stablehlo.broadcast_in_dim"(%224) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %226 = "stablehlo.broadcast_in_dim"(%225) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %227 = "stablehlo.multiply"(%220, %226) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %228 = "stablehlo.broadcast_in_dim"(%223) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %229 = "stablehlo.broadcast_in_dim"(%228) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %230 = "stablehlo.broadcast_in_dim"(%229) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %231 = "stablehlo.multiply"(%221, %230) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %232 = "stablehlo.subtract"(%227, %231) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %233 = "stablehlo.broadcast_in_dim"(%223) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %234 = "stablehlo.broadcast_in_dim"(%233) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %235 = "stablehlo.broadcast_in_dim"(%234) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %236 = "stablehlo.multiply"(%220, %235) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %237 = "stablehlo.broadcast_in_dim"(%222) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %238 = "stablehlo.broadcast_in_dim"(%237) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %239 = "stablehlo.broadcast_in_dim"(%238) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %240 = "stablehlo.multiply"(%221, %239) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %241 = "stablehlo.add"(%236, %240) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %242 = "stablehlo.broadcast_in_dim"(%232) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x4x16x2xf32>) -> tensor<4x4x16x2x1xf32>
    %243 = "stablehlo.broadcast_in_dim"(%241) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x4x16x2xf32>) -> tensor<4x4x16x2x1xf32>
    %244 = "stablehlo.concatenate"(%242, %243) <{dimension = 4 : i64}> : (tensor<4x4x16x2x1xf32>, tensor<4x4x16x2x1xf32>) -> tensor<4x4x16x2x2xf32>
    %245 = "stablehlo.reshape"(%244) : (tensor<4x4x16x2x2xf32>) -> tensor<4x4x16x4xf32>
    %246 = "stablehlo.transpose"(%193) <{permutation = array<i64: 0, 1, 3, 2>}> : (tensor<4x4x16x4xf32>) -> tensor<4x4x4x16xf32>
    %247 = "stablehlo.dot_general"(%245, %246) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x4x16x4xf32>, tensor<4x4x4x16xf32>) -> tensor<4x4x16x16xf32>
    %248 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %249 = "stablehlo.broadcast_in_dim"(%248) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %250 = "stablehlo.divide"(%247, %249) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %251 = "stablehlo.constant"() <{value = dense<5.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %252 = "stablehlo.broadcast_in_dim"(%251) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %253 = "stablehlo.divide"(%250, %252) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %254 = "stablehlo.tanh"(%253) : (tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %255 = "stablehlo.constant"() <{value = dense<5.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %256 = "stablehlo.broadcast_in_dim"(%255) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %257 = "stablehlo.multiply"(%256, %254) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %258 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %259 = "stablehlo.broadcast_in_dim"(%258) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<16x16xi1>
    %260 = "func.call"(%259) <{callee = @triu}> : (tensor<16x16xi1>) -> tensor<16x16xi1>
    %261 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %262 = "func.call"(%260, %261, %257) <{callee = @_where_1}> : (tensor<16x16xi1>, tensor<f32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %263 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %264 = "stablehlo.reduce"(%262, %263) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg46: tensor<f32>, %arg47: tensor<f32>):
      %348 = "stablehlo.maximum"(%arg46, %arg47) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%348) : (tensor<f32>) -> ()
    }) : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %265 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %266 = "stablehlo.broadcast_in_dim"(%265) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4x16xf32>
    %267 = "stablehlo.maximum"(%266, %264) : (tensor<4x4x16xf32>, tensor<4x4x16xf32>) -> tensor<4x4x16xf32>
    %268 = "stablehlo.broadcast_in_dim"(%267) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %269 = "stablehlo.broadcast_in_dim"(%268) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %270 = "stablehlo.subtract"(%262, %269) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %271 = "stablehlo.exponential"(%270) : (tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %272 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %273 = "stablehlo.reduce"(%271, %272) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg44: tensor<f32>, %arg45: tensor<f32>):
      %347 = "stablehlo.add"(%arg44, %arg45) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%347) : (tensor<f32>) -> ()
    }) : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %274 = "stablehlo.broadcast_in_dim"(%273) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %275 = "stablehlo.broadcast_in_dim"(%274) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %276 = "stablehlo.divide"(%271, %275) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %277 = "stablehlo.dot_general"(%195, %276) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x4x16x4xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x4x16xf32>
    %278 = "stablehlo.dot_general"(%277, %arg28) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2, 1], rhs_contracting_dimensions = [1, 0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x4x4x16xf32>, tensor<4x4x16xf32>) -> tensor<4x16x16xf32>
    %279 = "stablehlo.add"(%107, %278) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %280 = "stablehlo.dot_general"(%279, %arg27) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x16xf32>, tensor<16x24xf32>) -> tensor<4x16x24xf32>
    %281 = "stablehlo.negate"(%280) : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %282 = "stablehlo.exponential"(%281) : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %283 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %284 = "stablehlo.broadcast_in_dim"(%283) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x24xf32>
    %285 = "stablehlo.add"(%284, %282) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %286 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %287 = "stablehlo.broadcast_in_dim"(%286) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x24xf32>
    %288 = "stablehlo.divide"(%287, %285) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %289 = "stablehlo.dot_general"(%279, %arg30) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x16xf32>, tensor<16x24xf32>) -> tensor<4x16x24xf32>
    %290 = "func.call"(%289) <{callee = @relu}> : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %291 = "chlo.square"(%290) : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %292 = "stablehlo.multiply"(%288, %291) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %293 = "stablehlo.dot_general"(%292, %arg26) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x24xf32>, tensor<24x16xf32>) -> tensor<4x16x16xf32>
    %294 = "stablehlo.add"(%279, %293) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %295 = "stablehlo.multiply"(%arg25, %arg25) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %296 = "stablehlo.multiply"(%295, %arg25) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %297 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %298 = "stablehlo.broadcast_in_dim"(%297) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16xf32>
    %299 = "stablehlo.minimum"(%296, %298) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %300 = "stablehlo.broadcast_in_dim"(%299) <{broadcast_dimensions = array<i64: 1>}> : (tensor<16xf32>) -> tensor<1x16xf32>
    %301 = "stablehlo.broadcast_in_dim"(%300) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %302 = "stablehlo.broadcast_in_dim"(%301) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %303 = "stablehlo.add"(%294, %302) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %304 = "stablehlo.transpose"(%arg34) <{permutation = array<i64: 1, 0>}> : (tensor<256x16xf32>) -> tensor<16x256xf32>
    %305 = "stablehlo.dot_general"(%303, %304) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x16xf32>, tensor<16x256xf32>) -> tensor<4x16x256xf32>
    %306 = "stablehlo.reshape"(%305) : (tensor<4x16x256xf32>) -> tensor<64x256xf32>
    %307 = "stablehlo.slice"(%arg35) <{limit_indices = array<i64: 4, 17>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %308 = "stablehlo.reshape"(%307) : (tensor<4x16xi32>) -> tensor<64xi32>
    %309 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %310 = "stablehlo.reduce"(%306, %309) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg42: tensor<f32>, %arg43: tensor<f32>):
      %346 = "stablehlo.maximum"(%arg42, %arg43) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%346) : (tensor<f32>) -> ()
    }) : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
    %311 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %312 = "stablehlo.broadcast_in_dim"(%311) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %313 = "stablehlo.maximum"(%312, %310) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %314 = "stablehlo.is_finite"(%313) : (tensor<64xf32>) -> tensor<64xi1>
    %315 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %316 = "stablehlo.broadcast_in_dim"(%315) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %317 = "stablehlo.select"(%314, %313, %316) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %318 = "stablehlo.broadcast_in_dim"(%317) <{broadcast_dimensions = array<i64: 0>}> : (tensor<64xf32>) -> tensor<64x1xf32>
    %319 = "stablehlo.broadcast_in_dim"(%318) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<64x1xf32>) -> tensor<64x256xf32>
    %320 = "stablehlo.subtract"(%306, %319) : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
    %321 = "stablehlo.exponential"(%320) : (tensor<64x256xf32>) -> tensor<64x256xf32>
    %322 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %323 = "stablehlo.reduce"(%321, %322) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg40: tensor<f32>, %arg41: tensor<f32>):
      %345 = "stablehlo.add"(%arg40, %arg41) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%345) : (tensor<f32>) -> ()
    }) : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
    %324 = "stablehlo.abs"(%323) : (tensor<64xf32>) -> tensor<64xf32>
    %325 = "stablehlo.log"(%324) : (tensor<64xf32>) -> tensor<64xf32>
    %326 = "stablehlo.add"(%325, %317) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %327 = "stablehlo.broadcast_in_dim"(%308) <{broadcast_dimensions = array<i64: 0>}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %328 = "func.call"(%306, %327) <{callee = @take_along_axis}> : (tensor<64x256xf32>, tensor<64x1xi32>) -> tensor<64x1xf32>
    %329 = "stablehlo.reshape"(%328) : (tensor<64x1xf32>) -> tensor<64xf32>
    %330 = "stablehlo.subtract"(%326, %329) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %331 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %332 = "stablehlo.reduce"(%330, %331) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg38: tensor<f32>, %arg39: tensor<f32>):
      %344 = "stablehlo.add"(%arg38, %arg39) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%344) : (tensor<f32>) -> ()
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %333 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %334 = "stablehlo.divide"(%332, %333) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %335 = "stablehlo.multiply"(%326, %326) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %336 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %337 = "stablehlo.reduce"(%335, %336) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg36: tensor<f32>, %arg37: tensor<f32>):
      %343 = "stablehlo.add"(%arg36, %arg37) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%343) : (tensor<f32>) -> ()
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %338 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %339 = "stablehlo.divide"(%337, %338) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %340 = "stablehlo.constant"() <{value = dense<0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %341 = "stablehlo.multiply"(%340, %339) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %342 = "stablehlo.add"(%334, %341) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "func.return"(%342) : (tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<256x16xf32>, tensor<4x16xi32>) -> tensor<4x16x16xf32>, sym_name = "_take", sym_visibility = "private"}> ({
  ^bb0(%arg21: tensor<256x16xf32>, %arg22: tensor<4x16xi32>):
    %69 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %70 = "stablehlo.broadcast_in_dim"(%69) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16xi32>
    %71 = "stablehlo.compare"(%arg22, %70) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi1>
    %72 = "stablehlo.constant"() <{value = dense<256> : tensor<i32>}> : () -> tensor<i32>
    %73 = "stablehlo.broadcast_in_dim"(%72) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16xi32>
    %74 = "stablehlo.add"(%arg22, %73) : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
    %75 = "func.call"(%71, %74, %arg22) <{callee = @_where}> : (tensor<4x16xi1>, tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
    %76 = "stablehlo.broadcast_in_dim"(%75) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %77 = "stablehlo.constant"() <{value = dense<255> : tensor<1xi32>}> : () -> tensor<1xi32>
    %78 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %79 = "stablehlo.broadcast_in_dim"(%78) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16x1xi32>
    %80 = "stablehlo.compare"(%76, %79) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %81 = "stablehlo.broadcast_in_dim"(%77) <{broadcast_dimensions = array<i64: 2>}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %82 = "stablehlo.broadcast_in_dim"(%81) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x1xi32>) -> tensor<4x16x1xi32>
    %83 = "stablehlo.compare"(%76, %82) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %84 = "stablehlo.and"(%80, %83) : (tensor<4x16x1xi1>, tensor<4x16x1xi1>) -> tensor<4x16x1xi1>
    %85 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %86 = "stablehlo.reduce"(%84, %85) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg23: tensor<i1> loc("reduce_and"), %arg24: tensor<i1> loc("reduce_and")):
      %92 = "stablehlo.and"(%arg23, %arg24) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%92) : (tensor<i1>) -> ()
    }) : (tensor<4x16x1xi1>, tensor<i1>) -> tensor<4x16xi1>
    %87 = "stablehlo.gather"(%arg21, %76) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<256x16xf32>, tensor<4x16x1xi32>) -> tensor<4x16x16xf32>
    %88 = "stablehlo.broadcast_in_dim"(%86) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xi1>) -> tensor<4x16x16xi1>
    %89 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %90 = "stablehlo.broadcast_in_dim"(%89) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x16xf32>
    %91 = "stablehlo.select"(%88, %87, %90) : (tensor<4x16x16xi1>, tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    "func.return"(%91) : (tensor<4x16x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x16xi1>, tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg18: tensor<4x16xi1>, %arg19: tensor<4x16xi32>, %arg20: tensor<4x16xi32>):
    %68 = "stablehlo.select"(%arg18, %arg19, %arg20) : (tensor<4x16xi1>, tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
    "func.return"(%68) : (tensor<4x16xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x16x16xf32>, tensor<i32>) -> tensor<4x16x1xf32>, sym_name = "_var", sym_visibility = "private"}> ({
  ^bb0(%arg12: tensor<4x16x16xf32>, %arg13: tensor<i32>):
    %45 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %46 = "stablehlo.reduce"(%arg12, %45) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg16: tensor<f32> loc("reduce_sum"), %arg17: tensor<f32> loc("reduce_sum")):
      %67 = "stablehlo.add"(%arg16, %arg17) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%67) : (tensor<f32>) -> ()
    }) : (tensor<4x16x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %47 = "stablehlo.broadcast_in_dim"(%46) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %48 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %49 = "stablehlo.broadcast_in_dim"(%48) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %50 = "stablehlo.divide"(%47, %49) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %51 = "stablehlo.broadcast_in_dim"(%50) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %52 = "stablehlo.subtract"(%arg12, %51) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %53 = "chlo.square"(%52) : (tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %54 = "stablehlo.convert"(%arg13) : (tensor<i32>) -> tensor<f32>
    %55 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %56 = "stablehlo.subtract"(%55, %54) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %57 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %58 = "stablehlo.reduce"(%53, %57) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg14: tensor<f32> loc("reduce_sum"), %arg15: tensor<f32> loc("reduce_sum")):
      %66 = "stablehlo.add"(%arg14, %arg15) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%66) : (tensor<f32>) -> ()
    }) : (tensor<4x16x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %59 = "stablehlo.broadcast_in_dim"(%58) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %60 = "stablehlo.broadcast_in_dim"(%56) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %61 = "stablehlo.divide"(%59, %60) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %62 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %63 = "stablehlo.compare"(%56, %62) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %64 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %65 = "func.call"(%63, %61, %64) <{callee = @_where_0}> : (tensor<i1>, tensor<4x16x1xf32>, tensor<f32>) -> tensor<4x16x1xf32>
    "func.return"(%65) : (tensor<4x16x1xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<4x16x1xf32>, tensor<f32>) -> tensor<4x16x1xf32>, sym_name = "_where_0", sym_visibility = "private"}> ({
  ^bb0(%arg9: tensor<i1>, %arg10: tensor<4x16x1xf32>, %arg11: tensor<f32>):
    %41 = "stablehlo.convert"(%arg11) : (tensor<f32>) -> tensor<f32>
    %42 = "stablehlo.broadcast_in_dim"(%41) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x1xf32>
    %43 = "stablehlo.broadcast_in_dim"(%42) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x1xf32>) -> tensor<4x16x1xf32>
    %44 = "stablehlo.select"(%arg9, %arg10, %43) : (tensor<i1>, tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    "func.return"(%44) : (tensor<4x16x1xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<16x16xi1>) -> tensor<16x16xi1>, sym_name = "triu", sym_visibility = "private"}> ({
  ^bb0(%arg8: tensor<16x16xi1>):
    %32 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16x16xi32>
    %33 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %34 = "stablehlo.broadcast_in_dim"(%33) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<16x16xi32>
    %35 = "stablehlo.add"(%32, %34) : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
    %36 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<16x16xi32>
    %37 = "stablehlo.compare"(%35, %36) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %38 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %39 = "stablehlo.broadcast_in_dim"(%38) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<16x16xi1>
    %40 = "stablehlo.select"(%37, %39, %arg8) : (tensor<16x16xi1>, tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
    "func.return"(%40) : (tensor<16x16xi1>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<16x16xi1>, tensor<f32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>, sym_name = "_where_1", sym_visibility = "private"}> ({
  ^bb0(%arg5: tensor<16x16xi1>, %arg6: tensor<f32>, %arg7: tensor<4x4x16x16xf32>):
    %26 = "stablehlo.convert"(%arg6) : (tensor<f32>) -> tensor<f32>
    %27 = "stablehlo.broadcast_in_dim"(%arg5) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x16xi1>) -> tensor<4x16x16xi1>
    %28 = "stablehlo.broadcast_in_dim"(%26) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x16xf32>
    %29 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<4x16x16xi1>) -> tensor<4x4x16x16xi1>
    %30 = "stablehlo.broadcast_in_dim"(%28) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %31 = "stablehlo.select"(%29, %30, %arg7) : (tensor<4x4x16x16xi1>, tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    "func.return"(%31) : (tensor<4x4x16x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>, sym_name = "relu", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<4x16x24xf32>):
    %23 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %24 = "stablehlo.broadcast_in_dim"(%23) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x24xf32>
    %25 = "stablehlo.maximum"(%arg4, %24) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    "func.return"(%25) : (tensor<4x16x24xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<64x256xf32>, tensor<64x1xi32>) -> tensor<64x1xf32>, sym_name = "take_along_axis", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<64x256xf32>, %arg1: tensor<64x1xi32>):
    %0 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<64x1xi32>
    %2 = "stablehlo.compare"(%arg1, %1) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi1>
    %3 = "stablehlo.constant"() <{value = dense<256> : tensor<i32>}> : () -> tensor<i32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<64x1xi32>
    %5 = "stablehlo.add"(%arg1, %4) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %6 = "stablehlo.select"(%2, %5, %arg1) : (tensor<64x1xi1>, tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %7 = "stablehlo.reshape"(%6) : (tensor<64x1xi32>) -> tensor<64x1x1xi32>
    %8 = "stablehlo.constant"() <{value = dense<255> : tensor<1xi32>}> : () -> tensor<1xi32>
    %9 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %10 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<64x1x1xi32>
    %11 = "stablehlo.compare"(%7, %10) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<64x1x1xi32>, tensor<64x1x1xi32>) -> tensor<64x1x1xi1>
    %12 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64: 2>}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x1xi32>) -> tensor<64x1x1xi32>
    %14 = "stablehlo.compare"(%7, %13) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<64x1x1xi32>, tensor<64x1x1xi32>) -> tensor<64x1x1xi1>
    %15 = "stablehlo.and"(%11, %14) : (tensor<64x1x1xi1>, tensor<64x1x1xi1>) -> tensor<64x1x1xi1>
    %16 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %17 = "stablehlo.reduce"(%15, %16) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg2: tensor<i1> loc("reduce_and"), %arg3: tensor<i1> loc("reduce_and")):
      %22 = "stablehlo.and"(%arg2, %arg3) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%22) : (tensor<i1>) -> ()
    }) : (tensor<64x1x1xi1>, tensor<i1>) -> tensor<64x1xi1>
    %18 = "stablehlo.gather"(%arg0, %7) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<64x256xf32>, tensor<64x1x1xi32>) -> tensor<64x1xf32>
    %19 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %20 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x1xf32>
    %21 = "stablehlo.select"(%17, %18, %20) : (tensor<64x1xi1>, tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x1xf32>
    "func.return"(%21) : (tensor<64x1xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
