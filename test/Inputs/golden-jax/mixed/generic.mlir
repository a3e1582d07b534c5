"builtin.module"() <{sym_name = "jit_loss"}> ({
  "func.func"() <{function_type = (tensor<16xf32>, tensor<24x16xf32>, tensor<16x24xf32>, tensor<4x4x16xf32>, tensor<16x32xf32>, tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<256x16xf32>, tensor<4x17xi32>) -> tensor<f32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg26: tensor<16xf32> loc("params['layers'][0]['bias']"), %arg27: tensor<24x16xf32> loc("params['layers'][0]['down']"), %arg28: tensor<16x24xf32> loc("params['layers'][0]['gate']"), %arg29: tensor<4x4x16xf32> loc("params['layers'][0]['out']"), %arg30: tensor<16x32xf32> loc("params['layers'][0]['qkv']"), %arg31: tensor<16x24xf32> loc("params['layers'][0]['up']"), %arg32: tensor<16xf32> loc("params['norm']['bias']"), %arg33: tensor<16xf32> loc("params['norm']['gain']"), %arg34: tensor<16x16xf32> loc("params['wpe']"), %arg35: tensor<256x16xf32> loc("params['wte']"), %arg36: tensor<4x17xi32> loc("tokens")):
    %102 = "stablehlo.slice"(%arg36) <{limit_indices = array<i64: 4, 16>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %103 = "func.call"(%arg35, %102) <{callee = @_take}> : (tensor<256x16xf32>, tensor<4x16xi32>) -> tensor<4x16x16xf32>
    %104 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %105 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %106 = "stablehlo.broadcast_in_dim"(%105) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<16xi32>
    %107 = "stablehlo.compare"(%104, %106) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %108 = "stablehlo.constant"() <{value = dense<16> : tensor<i32>}> : () -> tensor<i32>
    %109 = "stablehlo.broadcast_in_dim"(%108) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<16xi32>
    %110 = "stablehlo.add"(%104, %109) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %111 = "stablehlo.select"(%107, %110, %104) : (tensor<16xi1>, tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %112 = "stablehlo.broadcast_in_dim"(%111) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %113 = "stablehlo.gather"(%arg34, %112) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<16x16xf32>, tensor<16x1xi32>) -> tensor<16x16xf32>
    %114 = "stablehlo.broadcast_in_dim"(%113) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x16xf32>) -> tensor<1x16x16xf32>
    %115 = "stablehlo.broadcast_in_dim"(%114) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x16x16xf32>) -> tensor<4x16x16xf32>
    %116 = "stablehlo.add"(%103, %115) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %117 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %118 = "stablehlo.broadcast_in_dim"(%117) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x16xf32>
    %119 = "func.call"(%118) <{callee = @tril}> : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %120 = "stablehlo.dot_general"(%119, %116) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<16x16xf32>, tensor<4x16x16xf32>) -> tensor<16x4x16xf32>
    %121 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %122 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x4x16xf32>
    %123 = "stablehlo.divide"(%120, %122) : (tensor<16x4x16xf32>, tensor<16x4x16xf32>) -> tensor<16x4x16xf32>
    %124 = "stablehlo.transpose"(%123) <{permutation = array<i64: 1, 0, 2>}> : (tensor<16x4x16xf32>) -> tensor<4x16x16xf32>
    %125 = "stablehlo.add"(%116, %124) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %126 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %127 = "stablehlo.reduce"(%125, %126) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg49: tensor<f32>, %arg50: tensor<f32>):
      %377 = "stablehlo.add"(%arg49, %arg50) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%377) : (tensor<f32>) -> ()
    }) : (tensor<4x16x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %128 = "stablehlo.broadcast_in_dim"(%127) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %129 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %130 = "stablehlo.broadcast_in_dim"(%129) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %131 = "stablehlo.divide"(%128, %130) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %132 = "stablehlo.broadcast_in_dim"(%131) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %133 = "stablehlo.subtract"(%125, %132) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %134 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %135 = "func.call"(%125, %134) <{callee = @_var}> : (tensor<4x16x16xf32>, tensor<i32>) -> tensor<4x16x1xf32>
    %136 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %137 = "stablehlo.broadcast_in_dim"(%136) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x1xf32>
    %138 = "stablehlo.add"(%135, %137) : (tensor<4x16x1xf32>, tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %139 = "stablehlo.rsqrt"(%138) : (tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
    %140 = "stablehlo.broadcast_in_dim"(%139) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
    %141 = "stablehlo.multiply"(%133, %140) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %142 = "stablehlo.broadcast_in_dim"(%arg33) <{broadcast_dimensions = array<i64: 1>}> : (tensor<16xf32>) -> tensor<1x16xf32>
    %143 = "stablehlo.broadcast_in_dim"(%142) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %144 = "stablehlo.broadcast_in_dim"(%143) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %145 = "stablehlo.multiply"(%141, %144) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %146 = "stablehlo.broadcast_in_dim"(%arg32) <{broadcast_dimensions = array<i64: 1>}> : (tensor<16xf32>) -> tensor<1x16xf32>
    %147 = "stablehlo.broadcast_in_dim"(%146) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %148 = "stablehlo.broadcast_in_dim"(%147) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %149 = "stablehlo.add"(%145, %148) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %150 = "stablehlo.dot_general"(%149, %arg30) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x16xf32>, tensor<16x32xf32>) -> tensor<4x16x32xf32>
    %151 = "stablehlo.slice"(%150) <{limit_indices = array<i64: 4, 16, 16>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<4x16x32xf32>) -> tensor<4x16x16xf32>
    %152 = "stablehlo.slice"(%150) <{limit_indices = array<i64: 4, 16, 24>, start_indices = array<i64: 0, 0, 16>, strides = array<i64: 1, 1, 1>}> : (tensor<4x16x32xf32>) -> tensor<4x16x8xf32>
    %153 = "stablehlo.slice"(%150) <{limit_indices = array<i64: 4, 16, 32>, start_indices = array<i64: 0, 0, 24>, strides = array<i64: 1, 1, 1>}> : (tensor<4x16x32xf32>) -> tensor<4x16x8xf32>
    %154 = "stablehlo.reshape"(%151) : (tensor<4x16x16xf32>) -> tensor<4x16x4x4xf32>
    %155 = "stablehlo.transpose"(%154) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<4x16x4x4xf32>) -> tensor<4x4x16x4xf32>
    %156 = "stablehlo.reshape"(%152) : (tensor<4x16x8xf32>) -> tensor<4x16x2x4xf32>
    %157 = "stablehlo.transpose"(%156) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<4x16x2x4xf32>) -> tensor<4x2x16x4xf32>
    %158 = "stablehlo.reshape"(%153) : (tensor<4x16x8xf32>) -> tensor<4x16x2x4xf32>
    %159 = "stablehlo.transpose"(%158) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<4x16x2x4xf32>) -> tensor<4x2x16x4xf32>
    %160 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %161 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2xi32>
    %162 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %163 = "stablehlo.broadcast_in_dim"(%162) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %164 = "stablehlo.multiply"(%163, %161) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %165 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %166 = "stablehlo.broadcast_in_dim"(%165) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %167 = "stablehlo.add"(%166, %164) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %168 = "stablehlo.convert"(%167) : (tensor<2xi32>) -> tensor<2xf32>
    %169 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %170 = "stablehlo.broadcast_in_dim"(%169) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %171 = "stablehlo.divide"(%168, %170) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %172 = "stablehlo.constant"() <{value = dense<1.000000e+02> : tensor<f32>}> : () -> tensor<f32>
    %173 = "stablehlo.broadcast_in_dim"(%172) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %174 = "stablehlo.power"(%173, %171) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %175 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %176 = "stablehlo.broadcast_in_dim"(%175) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %177 = "stablehlo.divide"(%176, %174) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %178 = "stablehlo.convert"(%160) : (tensor<16xi32>) -> tensor<16xf32>
    %179 = "stablehlo.broadcast_in_dim"(%178) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xf32>) -> tensor<16x1xf32>
    %180 = "stablehlo.broadcast_in_dim"(%177) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xf32>) -> tensor<1x2xf32>
    %181 = "stablehlo.broadcast_in_dim"(%179) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xf32>) -> tensor<16x2xf32>
    %182 = "stablehlo.broadcast_in_dim"(%180) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x2xf32>) -> tensor<16x2xf32>
    %183 = "stablehlo.multiply"(%181, %182) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
    %184 = "stablehlo.slice"(%157) <{limit_indices = array<i64: 4, 2, 16, 4>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 2>}> : (tensor<4x2x16x4xf32>) -> tensor<4x2x16x2xf32>
    %185 = "stablehlo.slice"(%157) <{limit_indices = array<i64: 4, 2, 16, 4>, start_indices = array<i64: 0, 0, 0, 1>, strides = array<i64: 1, 1, 1, 2>}> : (tensor<4x2x16x4xf32>) -> tensor<4x2x16x2xf32>
    %186 = "stablehlo.cosine"(%183) : (tensor<16x2xf32>) -> tensor<16x2xf32>
    %187 = "stablehlo.sine"(%183) : (tensor<16x2xf32>) -> tensor<16x2xf32>
    %188 = "stablehlo.broadcast_in_dim"(%186) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %189 = "stablehlo.broadcast_in_dim"(%188) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %190 = "stablehlo.broadcast_in_dim"(%189) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %191 = "stablehlo.multiply"(%184, %190) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %192 = "stablehlo.broadcast_in_dim"(%187) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %193 = "stablehlo.broadcast_in_dim"(%192) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %194 = "stablehlo.broadcast_in_dim"(%193) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %195 = "stablehlo.multiply"(%185, %194) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %196 = "stablehlo.subtract"(%191, %195) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %197 = "stablehlo.broadcast_in_dim"(%187) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %198 = "stablehlo.broadcast_in_dim"(%197) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %199 = "stablehlo.broadcast_in_dim"(%198) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %200 = "stablehlo.multiply"(%184, %199) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %201 = "stablehlo.broadcast_in_dim"(%186) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %202 = "stablehlo.broadcast_in_dim"(%201) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %203 = "stablehlo.broadcast_in_dim"(%202) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x2x16x2xf32>
    %204 = "stablehlo.multiply"(%185, %203) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %205 = "stablehlo.add"(%200, %204) : (tensor<4x2x16x2xf32>, tensor<4x2x16x2xf32>) -> tensor<4x2x16x2xf32>
    %206 = "stablehlo.broadcast_in_dim"(%196) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x2x16x2xf32>) -> tensor<4x2x16x2x1xf32>
    %207 = "stablehlo.broadcast_in_dim"(%205) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x2x16x2xf32>) -> tensor<4x2x16x2x1xf32>
    %208 = "stablehlo.concatenate"(%206, %207) <{dimension = 4 : i64}> : (tensor<4x2x16x2x1xf32>, tensor<4x2x16x2x1xf32>) -> tensor<4x2x16x2x2xf32>
    %209 = "stablehlo.reshape"(%208) : (tensor<4x2x16x2x2xf32>) -> tensor<4x2x16x4xf32>
    %210 = "stablehlo.broadcast_in_dim"(%209) <{broadcast_dimensions = array<i64: 0, 1, 3, 4>}> : (tensor<4x2x16x4xf32>) -> tensor<4x2x2x16x4xf32>
    %211 = "stablehlo.reshape"(%210) : (tensor<4x2x2x16x4xf32>) -> tensor<4x4x16x4xf32>
    %212 = "stablehlo.broadcast_in_dim"(%159) <{broadcast_dimensions = array<i64: 0, 1, 3, 4>}> : (tensor<4x2x16x4xf32>) -> tensor<4x2x2x16x4xf32>
    %213 = "stablehlo.reshape"(%212) : (tensor<4x2x2x16x4xf32>) -> tensor<4x4x16x4xf32>
    %214 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16xi32>
    %215 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2xi32>
    %216 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %217 = "stablehlo.broadcast_in_dim"(%216) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %218 = "stablehlo.multiply"(%217, %215) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %219 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %220 = "stablehlo.broadcast_in_dim"(%219) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2xi32>
    %221 = "stablehlo.add"(%220, %218) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %222 = "stablehlo.convert"(%221) : (tensor<2xi32>) -> tensor<2xf32>
    %223 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %224 = "stablehlo.broadcast_in_dim"(%223) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %225 = "stablehlo.divide"(%222, %224) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %226 = "stablehlo.constant"() <{value = dense<1.000000e+02> : tensor<f32>}> : () -> tensor<f32>
    %227 = "stablehlo.broadcast_in_dim"(%226) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %228 = "stablehlo.power"(%227, %225) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %229 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %230 = "stablehlo.broadcast_in_dim"(%229) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %231 = "stablehlo.divide"(%230, %228) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %232 = "stablehlo.convert"(%214) : (tensor<16xi32>) -> tensor<16xf32>
    %233 = "stablehlo.broadcast_in_dim"(%232) <{broadcast_dimensions = array<i64: 0>}> : (tensor<16xf32>) -> tensor<16x1xf32>
    %234 = "stablehlo.broadcast_in_dim"(%231) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xf32>) -> tensor<1x2xf32>
    %235 = "stablehlo.broadcast_in_dim"(%233) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<16x1xf32>) -> tensor<16x2xf32>
    %236 = "stablehlo.broadcast_in_dim"(%234) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x2xf32>) -> tensor<16x2xf32>
    %237 = "stablehlo.multiply"(%235, %236) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
    %238 = "stablehlo.slice"(%155) <{limit_indices = array<i64: 4, 4, 16, 4>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 2>}> : (tensor<4x4x16x4xf32>) -> tensor<4x4x16x2xf32>
    %239 = "stablehlo.slice"(%155) <{limit_indices = array<i64: 4, 4, 16, 4>, start_indices = array<i64: 0, 0, 0, 1>, strides = array<i64: 1, 1, 1, 2>}> : (tensor<4x4x16x4xf32>) -> tensor<4x4x16x2xf32>
    %240 = "stablehlo.cosine"(%237) : (tensor<16x2xf32>) -> tensor<16x2xf32>
    %241 = "stablehlo.sine"(%237) : (tensor<16x2xf32>) -> tensor<16x2xf32>
    %242 = "stablehlo.broadcast_in_dim"(%240) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %243 = "stablehlo.broadcast_in_dim"(%242) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %244 = "stablehlo.broadcast_in_dim"(%243) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %245 = "stablehlo.multiply"(%238, %244) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %246 = "stablehlo.broadcast_in_dim"(%241) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %247 = "stablehlo.broadcast_in_dim"(%246) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %248 = "stablehlo.broadcast_in_dim"(%247) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %249 = "stablehlo.multiply"(%239, %248) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %250 = "stablehlo.subtract"(%245, %249) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %251 = "stablehlo.broadcast_in_dim"(%241) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %252 = "stablehlo.broadcast_in_dim"(%251) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %253 = "stablehlo.broadcast_in_dim"(%252) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %254 = "stablehlo.multiply"(%238, %253) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %255 = "stablehlo.broadcast_in_dim"(%240) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %256 = "stablehlo.broadcast_in_dim"(%255) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x16x2xf32>) -> tensor<1x1x16x2xf32>
    %257 = "stablehlo.broadcast_in_dim"(%256) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x16x2xf32>) -> tensor<4x4x16x2xf32>
    %258 = "stablehlo.multiply"(%239, %257) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %259 = "stablehlo.add"(%254, %258) : (tensor<4x4x16x2xf32>, tensor<4x4x16x2xf32>) -> tensor<4x4x16x2xf32>
    %260 = "stablehlo.broadcast_in_dim"(%250) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x4x16x2xf32>) -> tensor<4x4x16x2x1xf32>
    %261 = "stablehlo.broadcast_in_dim"(%259) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x4x16x2xf32>) -> tensor<4x4x16x2x1xf32>
    %262 = "stablehlo.concatenate"(%260, %261) <{dimension = 4 : i64}> : (tensor<4x4x16x2x1xf32>, tensor<4x4x16x2x1xf32>) -> tensor<4x4x16x2x2xf32>
    %263 = "stablehlo.reshape"(%262) : (tensor<4x4x16x2x2xf32>) -> tensor<4x4x16x4xf32>
    %264 = "stablehlo.transpose"(%211) <{permutation = array<i64: 0, 1, 3, 2>}> : (tensor<4x4x16x4xf32>) -> tensor<4x4x4x16xf32>
    %265 = "stablehlo.dot_general"(%263, %264) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x4x16x4xf32>, tensor<4x4x4x16xf32>) -> tensor<4x4x16x16xf32>
    %266 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %267 = "stablehlo.broadcast_in_dim"(%266) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %268 = "stablehlo.divide"(%265, %267) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %269 = "stablehlo.constant"() <{value = dense<5.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %270 = "stablehlo.broadcast_in_dim"(%269) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %271 = "stablehlo.divide"(%268, %270) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %272 = "stablehlo.tanh"(%271) : (tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %273 = "stablehlo.constant"() <{value = dense<5.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %274 = "stablehlo.broadcast_in_dim"(%273) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4x16x16xf32>
    %275 = "stablehlo.multiply"(%274, %272) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %276 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %277 = "stablehlo.broadcast_in_dim"(%276) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<16x16xi1>
    %278 = "func.call"(%277) <{callee = @triu}> : (tensor<16x16xi1>) -> tensor<16x16xi1>
    %279 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %280 = "func.call"(%278, %279, %275) <{callee = @_where_1}> : (tensor<16x16xi1>, tensor<f32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %281 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %282 = "stablehlo.reduce"(%280, %281) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg47: tensor<f32>, %arg48: tensor<f32>):
      %376 = "stablehlo.maximum"(%arg47, %arg48) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%376) : (tensor<f32>) -> ()
    }) : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %283 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %284 = "stablehlo.broadcast_in_dim"(%283) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x4x16xf32>
    %285 = "stablehlo.maximum"(%284, %282) : (tensor<4x4x16xf32>, tensor<4x4x16xf32>) -> tensor<4x4x16xf32>
    %286 = "stablehlo.broadcast_in_dim"(%285) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %287 = "stablehlo.broadcast_in_dim"(%286) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %288 = "stablehlo.subtract"(%280, %287) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %289 = "stablehlo.exponential"(%288) : (tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %290 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %291 = "stablehlo.reduce"(%289, %290) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg45: tensor<f32>, %arg46: tensor<f32>):
      %375 = "stablehlo.add"(%arg45, %arg46) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%375) : (tensor<f32>) -> ()
    }) : (tensor<4x4x16x16xf32>, tensor<f32>) -> tensor<4x4x16xf32>
    %292 = "stablehlo.broadcast_in_dim"(%291) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x4x16xf32>) -> tensor<4x4x16x1xf32>
    %293 = "stablehlo.broadcast_in_dim"(%292) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<4x4x16x1xf32>) -> tensor<4x4x16x16xf32>
    %294 = "stablehlo.divide"(%289, %293) : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
    %295 = "stablehlo.dot_general"(%213, %294) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x4x16x4xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x4x16xf32>
    %296 = "stablehlo.dot_general"(%295, %arg29) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2, 1], rhs_contracting_dimensions = [1, 0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x4x4x16xf32>, tensor<4x4x16xf32>) -> tensor<4x16x16xf32>
    %297 = "stablehlo.add"(%125, %296) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %298 = "stablehlo.dot_general"(%297, %arg28) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x16xf32>, tensor<16x24xf32>) -> tensor<4x16x24xf32>
    %299 = "stablehlo.negate"(%298) : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %300 = "stablehlo.exponential"(%299) : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %301 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %302 = "stablehlo.broadcast_in_dim"(%301) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x24xf32>
    %303 = "stablehlo.add"(%302, %300) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %304 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %305 = "stablehlo.broadcast_in_dim"(%304) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x24xf32>
    %306 = "stablehlo.divide"(%305, %303) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %307 = "stablehlo.dot_general"(%297, %arg31) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x16xf32>, tensor<16x24xf32>) -> tensor<4x16x24xf32>
    %308 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %309 = "stablehlo.broadcast_in_dim"(%308) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x24xf32>
    %310 = "stablehlo.multiply"(%309, %307) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %311 = "stablehlo.negate"(%307) : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %312 = "stablehlo.constant"() <{value = dense<0.707106769> : tensor<f32>}> : () -> tensor<f32>
    %313 = "stablehlo.broadcast_in_dim"(%312) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x24xf32>
    %314 = "stablehlo.multiply"(%311, %313) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %315 = "chlo.erfc"(%314) : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %316 = "stablehlo.multiply"(%310, %315) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %317 = "stablehlo.abs"(%316) : (tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %318 = "stablehlo.multiply"(%306, %317) : (tensor<4x16x24xf32>, tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
    %319 = "stablehlo.dot_general"(%318, %arg27) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x24xf32>, tensor<24x16xf32>) -> tensor<4x16x16xf32>
    %320 = "stablehlo.add"(%297, %319) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %321 = "stablehlo.multiply"(%arg26, %arg26) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %322 = "stablehlo.multiply"(%321, %arg26) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %323 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %324 = "stablehlo.broadcast_in_dim"(%323) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16xf32>
    %325 = "stablehlo.minimum"(%322, %324) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %326 = "func.call"(%325) <{callee = @relu}> : (tensor<16xf32>) -> tensor<16xf32>
    %327 = "chlo.square"(%326) : (tensor<16xf32>) -> tensor<16xf32>
    %328 = "stablehlo.broadcast_in_dim"(%327) <{broadcast_dimensions = array<i64: 1>}> : (tensor<16xf32>) -> tensor<1x16xf32>
    %329 = "stablehlo.broadcast_in_dim"(%328) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<1x16xf32>) -> tensor<1x1x16xf32>
    %330 = "stablehlo.broadcast_in_dim"(%329) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<4x16x16xf32>
    %331 = "stablehlo.add"(%320, %330) : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    %332 = "stablehlo.transpose"(%arg35) <{permutation = array<i64: 1, 0>}> : (tensor<256x16xf32>) -> tensor<16x256xf32>
    %333 = "stablehlo.dot_general"(%331, %332) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16x16xf32>, tensor<16x256xf32>) -> tensor<4x16x256xf32>
    %334 = "stablehlo.reshape"(%333) : (tensor<4x16x256xf32>) -> tensor<64x256xf32>
    %335 = "stablehlo.slice"(%arg36) <{limit_indices = array<i64: 4, 17>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %336 = "stablehlo.reshape"(%335) : (tensor<4x16xi32>) -> tensor<64xi32>
    %337 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %338 = "stablehlo.reduce"(%334, %337) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg43: tensor<f32>, %arg44: tensor<f32>):
      %374 = "stablehlo.maximum"(%arg43, %arg44) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%374) : (tensor<f32>) -> ()
    }) : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
    %339 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %340 = "stablehlo.broadcast_in_dim"(%339) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %341 = "stablehlo.maximum"(%340, %338) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %342 = "stablehlo.is_finite"(%341) : (tensor<64xf32>) -> tensor<64xi1>
    %343 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %344 = "stablehlo.broadcast_in_dim"(%343) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %345 = "stablehlo.select"(%342, %341, %344) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %346 = "stablehlo.broadcast_in_dim"(%345) <{broadcast_dimensions = array<i64: 0>}> : (tensor<64xf32>) -> tensor<64x1xf32>
    %347 = "stablehlo.broadcast_in_dim"(%346) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<64x1xf32>) -> tensor<64x256xf32>
    %348 = "stablehlo.subtract"(%334, %347) : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
    %349 = "stablehlo.exponential"(%348) : (tensor<64x256xf32>) -> tensor<64x256xf32>
    %350 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %351 = "stablehlo.reduce"(%349, %350) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg41: tensor<f32>, %arg42: tensor<f32>):
      %373 = "stablehlo.add"(%arg41, %arg42) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%373) : (tensor<f32>) -> ()
    }) : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
    %352 = "stablehlo.abs"(%351) : (tensor<64xf32>) -> tensor<64xf32>
    %353 = "stablehlo.log"(%352) : (tensor<64xf32>) -> tensor<64xf32>
    %354 = "stablehlo.add"(%353, %345) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %355 = "stablehlo.broadcast_in_dim"(%336) <{broadcast_dimensions = array<i64: 0>}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %356 = "func.call"(%334, %355) <{callee = @take_along_axis}> : (tensor<64x256xf32>, tensor<64x1xi32>) -> tensor<64x1xf32>
    %357 = "stablehlo.reshape"(%356) : (tensor<64x1xf32>) -> tensor<64xf32>
    %358 = "stablehlo.subtract"(%354, %357) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %359 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %360 = "stablehlo.reduce"(%358, %359) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg39: tensor<f32>, %arg40: tensor<f32>):
      %372 = "stablehlo.add"(%arg39, %arg40) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%372) : (tensor<f32>) -> ()
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %361 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %362 = "stablehlo.divide"(%360, %361) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %363 = "stablehlo.multiply"(%354, %354) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %364 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %365 = "stablehlo.reduce"(%363, %364) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg37: tensor<f32>, %arg38: tensor<f32>):
      %371 = "stablehlo.add"(%arg37, %arg38) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%371) : (tensor<f32>) -> ()
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %366 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %367 = "stablehlo.divide"(%365, %366) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %368 = "stablehlo.constant"() <{value = dense<0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %369 = "stablehlo.multiply"(%368, %367) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %370 = "stablehlo.add"(%362, %369) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "func.return"(%370) : (tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<256x16xf32>, tensor<4x16xi32>) -> tensor<4x16x16xf32>, sym_name = "_take", sym_visibility = "private"}> ({
  ^bb0(%arg22: tensor<256x16xf32>, %arg23: tensor<4x16xi32>):
    %78 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %79 = "stablehlo.broadcast_in_dim"(%78) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16xi32>
    %80 = "stablehlo.compare"(%arg23, %79) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi1>
    %81 = "stablehlo.constant"() <{value = dense<256> : tensor<i32>}> : () -> tensor<i32>
    %82 = "stablehlo.broadcast_in_dim"(%81) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16xi32>
    %83 = "stablehlo.add"(%arg23, %82) : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
    %84 = "func.call"(%80, %83, %arg23) <{callee = @_where}> : (tensor<4x16xi1>, tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
    %85 = "stablehlo.broadcast_in_dim"(%84) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %86 = "stablehlo.constant"() <{value = dense<255> : tensor<1xi32>}> : () -> tensor<1xi32>
    %87 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %88 = "stablehlo.broadcast_in_dim"(%87) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x16x1xi32>
    %89 = "stablehlo.compare"(%85, %88) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %90 = "stablehlo.broadcast_in_dim"(%86) <{broadcast_dimensions = array<i64: 2>}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %91 = "stablehlo.broadcast_in_dim"(%90) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x1xi32>) -> tensor<4x16x1xi32>
    %92 = "stablehlo.compare"(%85, %91) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %93 = "stablehlo.and"(%89, %92) : (tensor<4x16x1xi1>, tensor<4x16x1xi1>) -> tensor<4x16x1xi1>
    %94 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %95 = "stablehlo.reduce"(%93, %94) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg24: tensor<i1> loc("reduce_and"), %arg25: tensor<i1> loc("reduce_and")):
      %101 = "stablehlo.and"(%arg24, %arg25) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%101) : (tensor<i1>) -> ()
    }) : (tensor<4x16x1xi1>, tensor<i1>) -> tensor<4x16xi1>
    %96 = "stablehlo.gather"(%arg22, %85) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<256x16xf32>, tensor<4x16x1xi32>) -> tensor<4x16x16xf32>
    %97 = "stablehlo.broadcast_in_dim"(%95) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x16xi1>) -> tensor<4x16x16xi1>
    %98 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %99 = "stablehlo.broadcast_in_dim"(%98) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16x16xf32>
    %100 = "stablehlo.select"(%97, %96, %99) : (tensor<4x16x16xi1>, tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
    "func.return"(%100) : (tensor<4x16x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x16xi1>, tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg19: tensor<4x16xi1>, %arg20: tensor<4x16xi32>, %arg21: tensor<4x16xi32>):
    %77 = "stablehlo.select"(%arg19, %arg20, %arg21) : (tensor<4x16xi1>, tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
    "func.return"(%77) : (tensor<4x16xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<16x16xf32>) -> tensor<16x16xf32>, sym_name = "tril", sym_visibility = "private"}> ({
  ^bb0(%arg18: tensor<16x16xf32>):
    %68 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<16x16xi32>
    %69 = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
    %70 = "stablehlo.broadcast_in_dim"(%69) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<16x16xi32>
    %71 = "stablehlo.add"(%68, %70) : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
    %72 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<16x16xi32>
    %73 = "stablehlo.compare"(%71, %72) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %74 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %75 = "stablehlo.broadcast_in_dim"(%74) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x16xf32>
    %76 = "stablehlo.select"(%73, %arg18, %75) : (tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    "func.return"(%76) : (tensor<16x16xf32>) -> ()
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
  "func.func"() <{function_type = (tensor<16xf32>) -> tensor<16xf32>, sym_name = "relu", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<16xf32>):
    %23 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %24 = "stablehlo.broadcast_in_dim"(%23) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16xf32>
    %25 = "stablehlo.maximum"(%arg4, %24) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    "func.return"(%25) : (tensor<16xf32>) -> ()
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
