//===- Family.h - a model family as a table -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What one family says where families differ: names of keys and tensors,
// kinds of norm, attention, rotary positions and MLP, and values of keys that are absent.
// The defaults of the fields are those of Llama. The files *Families.cpp have the tables.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_FAMILY_H
#define MESHWRIGHT_FRONTEND_FAMILY_H

#include "Config.h"

#include <memory>

namespace meshwright::frontend {

using llvm::StringRef;

/// A key of config.json, with dots that of an object in it, and its value where it is absent. Without a key the value is the family's.
template <typename T> struct Key {
  StringRef name;
  T otherwise = {};
  StringRef alias = {}; ///< another name of the key
};

/// The activation that has parameters.
inline constexpr llvm::StringLiteral xieluName = "xielu";

/// What bounds the two parts of a gated MLP. With a gain they are clamped, gate above and up on both sides, and the function is
/// gate sigmoid(gain gate) (up + 1). Without one the activation of gate is clamped above, up on both sides, by `limit`.
struct GateLimits {
  double limit = 0, gain = 0; ///< 0: none
};

enum class NormKind { RMS, Layer };

/// What is normalized of queries and of keys.
enum class HeadNorm {
  None,
  Each,  ///< each head, with one weight for all
  Whole, ///< all heads together, before they are split
  Apart, ///< each head, with a weight of its own
  Turned, ///< each head that turns, after that, without a weight
  After, ///< each head, with one weight for all, after the rotary embedding
};

/// How the projections to queries, keys and values lie in files.
enum class QKVStorage {
  Apart,   ///< in three tensors
  Thirds,  ///< in one: queries, keys, values
  ByGroup, ///< in one: for each key head its queries, its key and its value
  Shards, ///< in one, of four parts with as many heads each: of each its queries, values and keys
};

/// How files hold the matrices of a layer's experts.
enum class ExpertStorage {
  Apart,   ///< in a tensor for each
  Halves,  ///< those of all experts in one, gate and up in one: gate, then up
  InTurns, ///< row by row in turns
  Stacked, ///< those of all experts in one, gate and up apart
  Below,   ///< so, one below the other in a tensor of two dimensions
};

/// Which layers see a window, and what else differs by layer.
struct LayerKinds {
  Key<std::optional<int64_t>> window; ///< without a name: no layer has one
  StringRef use = {};                 ///< a flag that must be true for windows
  Key<int64_t> windowedLayers = {};   ///< only as many first layers may have one
  Key<int64_t> fullLayers = {};       ///< how many first layers have none
  Key<int64_t> fullEvery = {};        ///< a multiple of this has no window, ...
  int64_t fullFrom = 1;               ///< where the first layer has this number
  bool acrossBoth = false;            ///< the size is that of both sides together
  bool listed = false;                ///< "layer_types" lists the layers
  StringRef marks = {};    ///< without that list: the key that lists 1 for layers that have one, 0 for others
  StringRef before = {};   ///< the key of how many keys before a query's own are seen, in place of the window
  StringRef further = {};  ///< the key of how many layers that are not trained end the lists
  StringRef repeated = {}; ///< or this key, as pairs of types and how many times these follow each other
  bool unturned = false;              ///< without a list: those have one that do not turn
  bool turned = false;                ///< or those that do
  StringRef type = "sliding_attention"; ///< what the list calls them
  StringRef fullType = "full_attention"; ///< and the others
  bool lastFull = false; ///< the last layer has none, whatever the list says
  Key<int64_t> first = {}, firstEvery = {}; ///< so many first layers have none at multiples of this, and others are counted behind them
  bool chunks = false; ///< not windows but chunks that see nothing of each other
};

/// Experts in place of the MLP, and which layers have them.
struct Experts {
  Key<bool> used = {{}, true}; ///< whether layers have some
  /// They are beside the MLP, not in place of it: they read the stream under a norm of their own, and what both
  /// give is normalized before it is added. Routers read the stream.
  bool beside = false;
  Key<int64_t> count = {};      ///< of experts, which a list may say of each layer; without a name: some
  bool listsSparse = false;     ///< such a list is of layers that have some alone
  Key<int64_t> denseFirst = {}; ///< first layers that have none
  StringRef dense = {};         ///< the key that lists layers that have none
  StringRef sparse = {};        ///< the key that lists those that have some, if it is there
  bool needsSparse = false;     ///< it must be there
  StringRef kinds = {};         ///< the key that lists "dense" or "sparse" for each layer, if it is there
  StringRef marks = {};         ///< or the key that lists 1 or 0 for each layer
  Key<int64_t> every = {};      ///< those that are no multiple of this, from 1, have none
  Key<int64_t> offset = {};     ///< or, with a name, those that have not this remainder, from 0
  bool oneIsNone = false;       ///< a count of 1 says that layers have an MLP
  Key<int64_t> last = {};       ///< those after this have none; -1: all may have some

  Key<int64_t> chosen = {}; ///< experts of a token, which a list may say of each layer; without a name the family has no experts
  Key<std::optional<int64_t>> inner = {}; ///< absent: that of the MLP
  Key<std::optional<int64_t>> denseInner = {}; ///< of the MLP of layers that have none; absent: that of others
  Key<bool> normalized = {{}, true};      ///< whether the weights of a token's experts sum to 1
  bool normalizesSeveral = false; ///< where a token has one expert, its weight is the score
  /// Or the key of the order of the norm that the weights of a token's experts are divided by: 1, or null for none.
  StringRef normOrder = {};
  Key<double> leastSum = {}; ///< of what scores are divided by for that; without a name: any
  double addedToSum = 0;     ///< or what is added to it
  Key<double> factor = {{}, 1.0};         ///< of the weights, behind that
  bool sigmoid = false;                   ///< scores are sigmoids, not a softmax
  bool byLogits = false;    ///< the largest logits are chosen: sigmoids of large ones are all 1
  bool weighsInput = false; ///< an expert's input is weighed, not its output
  /// SparseMixer (Liu et al. 2023): the expert with the largest logit, and then that with the largest of the
  /// others. The weight of each is a softmax over the logits that are not smaller than its own by more than
  /// 2 * this share; without a name routers are others.
  Key<double> jitter = {};
  Key<int64_t> identities = {}; ///< how many zero-computation experts, which return their input, routers may also choose
  bool mayLack = false;     ///< a count of 0 says that no layer has some
  bool fullRouter = false; ///< in mixed precision its product is in f32 too, not only scores
  StringRef choiceBias = {};              ///< the tensor that is added to scores to choose
  bool choiceBiasIsRow = false;           ///< it is [1, experts] in files, not [experts]
  /// A token's experts come from some groups of experts, those with the largest sums of their
  /// `groupBest` largest scores; absent: one group.
  Key<std::optional<int64_t>> groups = {}, chosenGroups = {};
  int64_t groupBest = 2;
  /// The key that says whether there are groups, and what it says then; without a name: `groups`.
  struct {
    StringRef name = {}, grouped = {}, plain = {};
  } method = {};
  /// Whether routers are part of the loss, and how much.
  Key<bool> balanced = {};
  Key<double> balance = {};
  bool balanceOfLayers = false; ///< each layer has a loss of its own: of first choices where tokens have two experts
  Key<std::optional<int64_t>> sharedInner = {}; ///< of an MLP beside the experts
  bool sharedMayLack = false;                   ///< a size of 0 says that there is none
  Key<int64_t> sharedCount = {};                ///< or how many times that of an expert
  StringRef router = "mlp.gate";
  StringRef routerScale = {}; ///< what routers read is normalized, with this weight, over sqrt(hidden)
  StringRef expertScale = {}; ///< what the weights of each expert are multiplied by
  StringRef postNorm = {};    ///< what experts and the MLP beside them give is normalized
  StringRef scores = {};      ///< the key that is "sigmoid" or "softmax", instead of `sigmoid`; logits choose
  StringRef combination = {}; ///< the key that is "sum", or "average" of experts and the MLP beside them, also where absent
  StringRef gate = "mlp.experts.{expert}.gate_proj", up = "mlp.experts.{expert}.up_proj";
  StringRef down = "mlp.experts.{expert}.down_proj";
  StringRef shared = {}, sharedGate = {}; ///< of the MLP beside, and what it is scaled by
  /// Residual experts (Rajbhandari et al. 2022): whether an MLP of an expert's size is beside them, and the linear layer whose
  /// softmax says how much of the result is the experts', and how much is the MLP's.
  Key<bool> residual = {{}, false};
  StringRef coefficient = {};
  StringRef sharedGateUp = {}, sharedDown = {}; ///< its tensors, where one holds gate and up
  ExpertStorage storage = ExpertStorage::Apart;
  StringRef gateUp = {}, suffix = {}; ///< the tensor of both, and what follows names of tensors
  bool transposed = false;            ///< they are [experts, in, out]
  bool bias = false, routerBias = false;
  /// Instead of the activation: gate sigmoid(gain gate) (up + 1), with gate and up clamped.
  Key<double> limit = {}, gain = {};
  /// The keys that list for each layer what the activation of gate is clamped above by, and up on both sides: of experts,
  /// and of MLPs. 0 and null: nothing.
  StringRef limits = {}, mlpLimits = {};

  bool any() const { return !chosen.name.empty(); }
};

/// What a layer has in place of attention.
enum class Mixer {
  Attention,
  StateSpace,  ///< Mamba-2, a recurrence with a scalar decay for each head (Dao and Gu 2024)
  Delta,       ///< the gated delta rule (Yang, Kautz and Hatamizadeh 2024)
  ElementDelta, ///< the same with decays of each element of keys (Kimi Team 2025)
  Lightning, ///< a recurrence with a fixed decay for each head, which differs by layer (Qin et al. 2024)
  RealGated,   ///< RG-LRU, a recurrence of single elements (De et al. 2024)
  Selective,   ///< Mamba-1, whose channels have some states each, with decays of their own (Gu and Dao 2023)
  Convolution, ///< a short convolution between two gates, as in LFM2
  None,        ///< the layer is an MLP, or experts, alone
};

/// Linear recurrences and short convolutions in place of attention, and which layers have them.
struct Recurrence {
  Mixer mixer = Mixer::Attention;        ///< Attention: the family has none
  Key<int64_t> heads = {}, headDim = {}; ///< of values; the size may be "auto", as 0 is
  Key<int64_t> keyHeads = {}, keyDim = {}; ///< heads of keys and queries, which groups of heads share
  Key<int64_t> kernel = {};              ///< positions that the convolution sees
  Key<int64_t> chunk = {};               ///< positions of a chunk
  Key<int64_t> expand = {};              ///< heads * headDim / hidden; without a name: any
  Key<std::optional<int64_t>> inner = {}; ///< heads * headDim; without a name or null: as `expand` says
  Key<bool> bias = {}, convBias = {};
  Key<bool> outputBias = {};            ///< of the last product; without a name: as `bias`
  Key<bool> normed = {{}, true};        ///< what is gated is normalized,
  Key<bool> normedFirst = {{}, false};  ///< before it is gated
  Key<StringRef> activation = {}; ///< of the convolution; without a name: that of the MLP
  StringRef limit = {};           ///< the key of the bounds of step sizes; without a name: none
  Key<double> leastStep = {};     ///< or of the lower one alone
  Key<bool> scaledOutput = {};    ///< initial weights into the residual stream / sqrt(layers)
  double step = 0.01;             ///< the initial softplus of a step's bias; 0: the bias is 1
  StringRef part = "mixer";       ///< what names of its tensors begin with
  bool apart = false; ///< of the delta rule: queries, keys and values are one tensor, gates are others
  /// Or each has one; without names they have not.
  struct {
    StringRef q = {}, k = {}, v = {}, z = {}, b = {}, a = {}, convolutionQ = {}, convolutionK = {}, convolutionV = {}, norm = {}, o = {};
    StringRef zFirst = {}, aFirst = {}; ///< narrow products before those
    bool logsAreRows = false; ///< A_log is [1, 1, heads, 1] in files, not [heads]
  } parts = {};
  double normEps = 0;      ///< of the norm of heads; 0: that of others
  /// Decays of elements are bounded, if true: their logarithms are this bound times a sigmoid.
  Key<bool> bounded = {};
  Key<double> bound = {};
  Key<bool> negative = {}; ///< gates of the delta rule are twice as large, so that states may change their sign
  /// Norms of layers with one, in place of the family's; without names: those.
  struct {
    StringRef attention = {}, mlp = {};
  } norms = {};

  Key<int64_t> rank = {};    ///< of the product that makes steps; "auto", as 0, is a sixteenth of the hidden size
  bool normsParts = false;   ///< B, C and what makes steps are normalized
  Key<double> partEps = {};  ///< without weights, with this; without a name: with weights, with that of other norms

  /// Keys that say heads, headDim and kernel in their place, if they are there: transformers saves a configuration with them.
  struct {
    StringRef heads = {}, headDim = {}, kernel = {};
  } saved = {};
  /// The key of an object that says them in any case, if it is there: num_heads, head_dim and short_conv_kernel_size, and
  /// in kda_layers and full_attn_layers which layers there are, from 1.
  StringRef object = {};
  StringRef list = {}, listAlias = {}; ///< the key that lists layers
  bool needsList = false;              ///< it must be there
  StringRef pattern = {};              ///< or is a text with a letter for each: M, *, E and -
  StringRef attends = {};              ///< or lists the numbers of those with attention
  bool allAttend = true;               ///< all do where that list is absent, or none does
  StringRef cycle = {};                ///< or lists layers that are repeated: recurrent and attention
  Key<int64_t> every = {};             ///< or says that multiples, from 1, have attention
  Key<int64_t> offset = {};            ///< or, with a name, those that have this remainder, from 0
  bool alone = false; ///< layers have a mixer or an MLP, not both, and one norm
  bool feedsForward = true; ///< false: no layer has an MLP
  bool beside = false; ///< layers attend too: both read the norm, and their sum is added to the stream

  bool any() const { return mixer != Mixer::Attention; }
};

/// What values in a layer are multiplied by; without names: 1.
struct LayerFactors {
  Key<double> attentionInput = {}, keys = {}, attentionOutput = {};
  Key<double> mixerInput = {}, mixerOutput = {}; ///< of a recurrence
  StringRef mixer = {};                          ///< a list: gate, x, B, C and steps
  StringRef mlp = {};                            ///< a list: gate, output
};

/// The stream goes on from what norms give, s norm(x) + f part(norm(x)), where s and f are these.
struct NormedResiduals {
  bool used = false;
  Key<double> attentionStream = {}, attention = {}, mixerStream = {}, mixer = {}, mlpStream = {}, mlp = {};
};

/// Which layers have rotary positions.
enum class Turns {
  All,
  Windows,      ///< those with a window
  WindowsIfAny, ///< those with a window, or all if none has one
};

/// Rotary positions.
struct Rotary {
  bool used = true;
  Key<double> theta = {"rope_theta", 10000.0};
  Key<double> windowTheta = {}; ///< of layers with a window, whose angles are others
  bool byLayerType = false;     ///< so "rope_parameters" has an object for each layer type
  bool scalesWindows = false;   ///< "rope_scaling" scales those angles too
  Key<std::optional<int64_t>> original = {}; ///< the positions before longer ones were trained
  Key<double> part = {{}, 1.0};              ///< of a head that turns
  Key<int64_t> width = {}; ///< or the number of its elements; with both names, where it is there
  /// Keys that repeat theta and part and are not read: they must say the same.
  StringRef thetaAgain = {}, partAgain = {};
  bool interleaved = false;        ///< pairs are neighbours in files
  bool onlyLong = false;           ///< scaling is longrope, which files may call "su" and "yarn"
  bool scalingRequired = false;    ///< transformers has a default that is not plain angles
  StringRef type = {};             ///< the key that is "rope" where layers turn; without it they do not
  StringRef layers = {};           ///< the key that lists 1 for layers that turn, 0 for others
  bool sections = false; ///< positions have several axes, which text has in common ("mrope_section")
  bool mscales = false;  ///< longrope says the scale of cosines and sines: "short_mscale", "long_mscale"
  bool alpha = false;    ///< "dynamic" may have "alpha", which makes theta larger for all lengths
  Key<double> ratio = {}; ///< what theta is multiplied by
  StringRef thetas = {};  ///< the key that lists the theta of each layer, of which 0 turns nothing
  bool thetaByLayer = false; ///< the key of theta may list that of each layer, which layers of a type have in common
  StringRef parts = {};      ///< the key that lists so the part of a head that turns
  double partOfType = 0; ///< objects of layer types say the part that turns, which is this where they do not; 0: all have `part`
  double windowPart = 0; ///< and this where layers with a window have no such object
  bool backwards = false;  ///< pairs turn the other way
  bool optional = false;   ///< where theta is null no layer turns
  StringRef denseToo = {}; ///< the key that is 1 where layers without experts turn, whatever `turns` says
  Key<int64_t> unturnedEvery = {}; ///< without it: a multiple of this, from 1, does not turn
  Turns turns = Turns::All;
};

/// What selects keys for each query in sparse attention (DeepSeek-V3.2), by scores of its own. Where it selects all
/// keys, attention is what it is without it. Its parameters get no gradient.
struct Indexer {
  Key<int64_t> topk = {}, heads = {}, headDim = {}; ///< without names there is none
  StringRef types = {};                             ///< the key that lists layers: "full" have one, "shared" do not
  StringRef pattern = {}; ///< or says them as a text of F and S
  Key<int64_t> every = {}, offset = {}; ///< or how many layers one is for, and after how many first ones
};

/// Layers without a window that have other heads, and last layers that use keys and values of earlier ones, as
/// Gemma 4 has them. A key without a name is absent.
struct MixedHeads {
  Key<int64_t> headDim = {};                  ///< of layers without a window
  Key<std::optional<int64_t>> kvHeads = {};   ///< of those whose values are keys; absent: as others
  Key<bool> valuesAreKeys = {};               ///< of layers without a window, before both are normalized
  Key<int64_t> sharing = {}; ///< how many last layers use the keys and values of the last other one of their kind
  Key<bool> wide = {};       ///< whether those have an MLP twice as wide
};

/// What heads give is multiplied by a function of what attention reads, whose matrix is a tensor of its own.
struct HeadGate {
  StringRef part = {};     ///< without a name it is not
  bool ofElements = false; ///< each element has a factor of its own, else each head has one
  StringRef kind = {};     ///< the key that says so: "per-element", else "per-head" or true
  bool softplus = false;   ///< the function is a softplus, else a sigmoid
  Key<bool> used = {{}, true};
};

/// Sines, then cosines, of positions (Vaswani et al. 2017), which are added to embeddings.
struct Sinusoids {
  bool used = false;
  bool toEnd = false;         ///< the last frequency is 1/10000, else it is that of one pair more
  int64_t first = 0;          ///< the number of the first position
  bool afterPadding = false;  ///< or it is the one behind the padding token's
};

/// What each layer adds of the token itself, of which there is a vector for each layer (Gemma 3n).
struct LayerInputs {
  Key<int64_t> width = {}; ///< 0: there is none; without a name neither
  Key<int64_t> vocabulary = {};
};

/// Multi-head latent attention: queries, and keys with values, are products with a short vector
/// of each token, its latent, which is normalized. A part of each key, which turns, is the same for
/// all heads. Names of tensors are DeepSeek's.
struct Latent {
  bool used = false;
  Key<std::optional<int64_t>> queryRank = {"q_lora_rank", 1536}; ///< null: without a latent
  Key<int64_t> keyRank = {"kv_lora_rank", 512};
  Key<int64_t> plainDim = {"qk_nope_head_dim", 128}; ///< of a head of queries and keys, ...
  Key<int64_t> turnedDim = {"qk_rope_head_dim", 64}; ///< and what turns of it
  Key<std::optional<int64_t>> valueDim = {"v_head_dim", 128}; ///< null: hidden / heads
  Key<bool> bias = {"attention_bias", false}; ///< of products that make latents and the output
  Key<bool> interleaved = {{}, true};
  bool scaled = false; ///< latents are multiplied by sqrt(hidden / their size)
  Indexer indexer = {};
};

/// Attention as the difference of two with the same keys and values, the second times a number that is learned (Ye et al. 2024,
/// arXiv 2410.05258): heads in pairs, the first halves of which are the first attention.
struct Differential {
  bool used = false;
  Key<double> std = {}; ///< of the vectors that the number is made of
};

/// Attention that sees all keys in the same or the last blocks before, and some of earlier ones, as Phi-3-small has it: sequences
/// of no more than the former are supported, in which it sees all. Multiples of `denseEvery` see all keys.
struct BlockSparse {
  Key<int64_t> block = {}, local = {}, denseEvery = {}; ///< without names there is none
};

/// Queries of layers that do not turn, times 1 + factor ln(1 + n) where n times as many positions
/// as `every` lie up to theirs (Nakanishi 2025, arXiv 2501.19399).
struct Temperature {
  Key<bool> used = {};
  Key<int64_t> every = {};
  Key<double> factor = {};
  /// Instead, of all layers, where n times as many positions lie before theirs as
  /// "original_max_position_embeddings": the key of the factor, in the object that scales rotary positions.
  StringRef ofRotary = {};
};

/// What an encoder's output passes through before its logits.
struct Transform {
  StringRef dense = {}; ///< without a name: it does not
  StringRef function = {}, norm = {};
  Key<StringRef> activation = {};
  Key<bool> bias = {{}, true};
};

/// Names of a layer's parts, of which tensors are made. A part without a name is absent.
struct LayerNames {
  StringRef attentionNorm = "input_layernorm", attentionPostNorm = {};
  StringRef mlpNorm = "post_attention_layernorm", mlpPostNorm = {};
  StringRef attention = "self_attn", rotary = "self_attn.rotary_emb";
  StringRef q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj";
  StringRef qkv = {}; ///< the tensor that holds all three
  StringRef gateOfHeads = "self_attn.gate"; ///< rows of the queries' tensor, with gatedAttention
  StringRef qNorm = "self_attn.q_norm", kNorm = "self_attn.k_norm", o = "self_attn.o_proj";
  StringRef gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj";
  StringRef gateUp = {}; ///< the tensor that holds gate and up
  StringRef activation = "mlp.act_fn";
  StringRef plainUp = {}; ///< up, where a configuration has no gate
  /// Of a decoder's attention to what an encoder gives; without a name it has none.
  StringRef cross = {}, crossNorm = {}, crossQ = {}, crossK = {}, crossV = {}, crossO = {};
};

/// Relative positions as T5 has them: what is added to scores is a function of the distance from a query
/// to a key, the same in all layers, which differs by head.
struct RelativePositions {
  StringRef table = {}; ///< in files; without a name there are none
  Key<int64_t> buckets = {}, maxDistance = {};
  bool ofLayers = false; ///< each layer has a table of its own, by its name in the layer
};

/// Some configurations say not the MLP's inner size, but one that theirs is made of: two thirds of it,
/// times a factor, up to the next multiple.
struct AdjustedInner {
  Key<bool> used = {}; ///< without a name they do not
  Key<double> factor = {};
  Key<int64_t> multiple = {};
};

struct Family {
  StringRef name;
  /// What its losses and gradients are compared with.
  StringRef judge = "transformers";
  /// A flag that says which of a family's tables a configuration is for; without a name there is
  /// one table.
  struct {
    StringRef name = {};
    bool otherwise = false, value = false;
  } variant;
  /// Keys that are there, and that are not, if a configuration is for this table of the family.
  std::vector<StringRef> present = {}, absent = {};

  bool encoder = false; ///< queries see keys on both sides, and masked tokens are predicted
  /// The table of an encoder, to whose output the layers of this one attend; it reads sources, this one
  /// predicts targets. Both read one configuration, and have the embedding in common.
  std::shared_ptr<const Family> source = {};
  Key<std::optional<int64_t>> startToken = {}; ///< what precedes a target
  StringRef targetVocabulary = {}; ///< the key of a size that must be that of sources
  /// "eos_token_id" where it is absent, and whether "forced_eos_token_id" is that too where it is absent:
  /// transformers' defaults when a target is generated.
  std::optional<int64_t> endToken = {};
  bool forcesEnd = false;

  Key<int64_t> vocabulary = {"vocab_size", 32000};
  Key<int64_t> positions = {"max_position_embeddings", 2048};
  Key<int64_t> hidden = {"hidden_size", 4096};
  Key<int64_t> layers = {"num_hidden_layers", 32};
  Key<int64_t> heads = {"num_attention_heads", 32};
  Key<std::optional<int64_t>> kvHeads = {"num_key_value_heads", std::nullopt}; ///< absent: heads
  Key<std::optional<int64_t>> headDim = {"head_dim", std::nullopt}; ///< absent: hidden / heads
  Key<std::optional<int64_t>> inner = {"intermediate_size", 11008}; ///< absent: 4 hidden
  Key<int64_t> innerMultiple = {}; ///< or it is so many times hidden
  bool innerIsOfBoth = false; ///< it is the size of gate and up together
  AdjustedInner adjustedInner;

  /// The embedding's row without gradient; without a name: none.
  Key<std::optional<int64_t>> padding = {"pad_token_id", std::nullopt};
  Key<StringRef> activation = {"hidden_act", "silu"};
  bool geluIsTanh = false; ///< files say "gelu" and mean its tanh form
  bool mayBeXielu = false; ///< the activation may be xIELU, which each layer has parameters of
  Key<double> attentionDropout = {"attention_dropout", 0.0};
  Key<double> embeddingDropout = {}, residualDropout = {}, innerDropout = {};
  bool dropsAttention = true, dropsMlp = true; ///< whether residualDropout is that of attention, and of the MLP
  Key<double> std = {"initializer_range", 0.02};
  bool scaledByInputs = false; ///< initial matrices / sqrt(inputs), those of queries / sqrt(head) too
  bool scaledProjections = false; ///< initial weights into the residual stream / sqrt(2 layers)

  NormKind norm = NormKind::RMS;
  Key<double> eps = {"rms_norm_eps", 1e-6};
  bool normWeight = true, normBias = false, normPlusOne = false; ///< plus one: x (1 + weight)
  Key<bool> normAffine = {{}, true}; ///< false: norms have neither weight nor bias
  Key<bool> useNormBias = {{}, true};
  Key<bool> usePostNorms = {{}, true}; ///< false: what attention and the MLP give is not normalized
  bool normsFirstLayer = true; ///< false: attention of the first layer reads the stream as it is
  Key<bool> normFirst = {{}, true}; ///< false: norms read sums of the stream, and there is no last
  Key<bool> parallel = {};          ///< attention and MLP read the same stream
  bool parallelShares = false;      ///< and then both read one norm

  QKVStorage qkv = QKVStorage::Apart;
  bool transposed = false; ///< files hold matrices as [in, out]
  Key<bool> qkvBias = {}, outputBias = {}, mlpBias = {}, headBias = {};
  HeadNorm headNorm = HeadNorm::None;
  Key<bool> useHeadNorm = {{}, true};
  StringRef lastOutputBias = {}; ///< the bias of what attention of the last layer gives
  bool gated = true;
  bool gateUpInTurns = false; ///< the tensor of both has their rows in turns
  /// Instead of the activation, as for experts.
  Key<std::optional<double>> gateLimit = {};
  double gateGain = 0;
  StringRef feedForward = {}; ///< the key that says gate and activation: "relu", "gated-gelu"
  RelativePositions relative;
  /// Behind each head of queries in their tensor is one whose sigmoid scales what the head gives.
  bool gatedAttention = false;
  HeadGate headGate;
  StringRef sinks = {}; ///< the tensor of one more score a head, whose value is 0
  bool sinksInWindows = false;    ///< only layers with a window have it
  StringRef headsByLayer = {};    ///< the key that lists how many heads of queries each layer has
  int64_t windowedKvHeads = 1;    ///< layers with a window have so many times as many heads of keys
  StringRef windowedKvHeadsKey = {}; ///< or the number that this key says
  /// Keys of the number of heads of queries of layers with a window.
  std::vector<StringRef> windowedHeads = {};
  /// The key that lists what each layer has: groups of heads or no attention, the size of its MLP or none, or matrices
  /// in place of them.
  StringRef blocks = {};
  bool twice = false; ///< layers have two attentions and two MLPs one after the other; experts read what the first MLP reads
  StringRef attentions = {}; ///< the key that counts these attentions, where it says how many layers there are
  bool sharesLayers = false; ///< all layers are one, computed again and again
  Key<std::optional<int64_t>> valueDim = {};  ///< of a head of values; absent: that of keys
  Key<std::optional<double>> valueFactor = {}; ///< what values are multiplied by; absent: 1
  Rotary rotary;
  LayerKinds kinds;
  Experts experts;
  Latent latent;
  Differential differential;
  BlockSparse blockSparse;
  Recurrence recurrence;
  LayerFactors factors;
  NormedResiduals normedResiduals;
  MixedHeads mixed;
  LayerInputs inputs;
  bool normsValues = false; ///< values are normalized too, without a weight
  StringRef layerScale = {}; ///< the buffer that what a layer gives is multiplied by
  double alibi = 0; ///< the largest exponent of slopes of linear biases; 0: there are none

  /// Scores are divided by the root of this; absent: of the head's size.
  Key<std::optional<double>> scoreScale = {};
  Key<std::optional<double>> scoreFactor = {};             ///< or multiplied by this
  Key<std::optional<double>> scoreCap = {}, logitCap = {}; ///< absent: none
  Key<std::optional<double>> clip = {}; ///< of queries, keys and values; absent: none
  Key<bool> scaled = {{}, true};                           ///< or not scaled if false
  /// Or, if the first is true, by the head's size, and multiplied by the second.
  Key<bool> scoreByWidth = {};
  Key<double> scoreMultiplier = {};
  Key<bool> scaledByLayer = {}; ///< and divided by the layer's number from 1
  Temperature temperature;
  bool embeddingScaled = false; ///< embeddings times sqrt(hidden)
  bool embeddingScaleIsBF16 = false; ///< which is rounded
  Key<bool> scaleEmbedding = {}; ///< or so if true
  Sinusoids sinusoids;          ///< in place of a table of positions
  StringRef logitBias = {};     ///< a buffer that is added to logits
  /// Logits over sqrt(hidden); absent: where the head is the embedding.
  StringRef scaledLogits = {};
  bool normalizedHead = false; ///< rows of the head have length 1 where it is multiplied by
  bool dropsOutput = false; ///< residualDropout acts on the last norm's output too
  Key<double> embeddingFactor = {}, residualFactor = {}, logitFactor = {}, logitDivisor = {};
  /// Residuals times this / sqrt(layers), and logits divided by hidden / this; null: not at all.
  Key<std::optional<double>> depthFactor = {};
  Key<std::optional<int64_t>> logitWidth = {};
  Key<std::optional<int64_t>> embeddingWidth = {}; ///< absent: hidden; else it is projected
  bool projectsAlways = false; ///< also where it is hidden
  bool projectsLast = false; ///< positions, segments and the norm have that width too, and what is projected has a bias
  bool embeddingNormFirst = false; ///< positions are added behind the norm of embeddings

  Key<bool> tied = {"tie_word_embeddings", false};

  StringRef base = "model.", layerPrefix = "layers";
  StringRef embedding = "embed_tokens", positionTable = {}, embeddingNorm = {}, finalNorm = "norm",
            head = "lm_head";
  int64_t moreRows = 0; ///< of the embedding than tokens: for what other parts of a model read
  StringRef skippedLayers = {}; ///< the key that lists layers that read other parts alone, and that text skips
  StringRef projectIn = "project_in", projectOut = "project_out"; ///< of narrower embeddings
  int64_t positionOffset = 0;         ///< rows of the position table before that of position 0
  bool positionsAfterPadding = false; ///< those up to the padding's are the ones before
  StringRef typeTable = {};           ///< of segments, of which the first is trained
  Key<int64_t> types = {};
  Transform transform;
  LayerNames names;

  std::vector<StringRef> ignored = {};
  std::vector<FixedKey> fixed = {};
  std::vector<std::pair<StringRef, StringRef>> repeats = {}; ///< keys that must say what other keys say
};

std::vector<Family> gptFamilies();
std::vector<Family> llamaFamilies();
std::vector<Family> gemmaFamilies();
std::vector<Family> sparseFamilies();
std::vector<Family> derivedSparseFamilies();
std::vector<Family> otherSparseFamilies();
std::vector<Family> multimodalFamilies();
std::vector<Family> remoteCodeFamilies();
std::vector<Family> encoderFamilies();
std::vector<Family> recurrentFamilies();
std::vector<Family> encoderDecoderFamilies();

/// Experts as Qwen's families say them, and as DeepSeek's third version and the families after it do.
void addExperts(Family &f, int64_t count, int64_t chosen, int64_t inner);
void addRoutedExperts(Family &f, StringRef score, int64_t count, int64_t chosen, int64_t inner);

/// What other families are variations of.
Family glm4Moe();
Family llama();
Family mistral();
Family olmo2();
Family exaone4();
Family qwen2();
Family qwen3();
Family qwen3Moe();
Family hunyuan();
Family phi3();
Family deepseekV3();
Family gptNeoX();
Family gpt2();
Family mixtral();
Family glm();
Family ernie45();
Family granite();
Family graniteMoeShared();
Family cohere2();
Family olmo3();
/// A variation of Granite of the table `f`.
Family withSinksAndWindows(Family f);

/// The family of the text part of `whole`, a model of more than text, where that part does not say it; or empty.
StringRef textFamilyOf(StringRef whole);

/// A model type that is known and not supported, and why.
struct Refusal {
  StringRef model, why;
};
llvm::ArrayRef<Refusal> refusals();
/// Why `model` is refused; empty if it is not known.
StringRef whyRefused(StringRef model);

/// Releases whose configurations are read as `family`.
llvm::ArrayRef<StringRef> releasesOf(StringRef family);

/// All tables, in the order that messages list families in; those of one family are together.
llvm::ArrayRef<Family> families();

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_FAMILY_H
