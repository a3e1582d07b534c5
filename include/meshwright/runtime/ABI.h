//===- ABI.h - the C interface between generated code and the runtime -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A training executable is one object file written by the compiler, linked to
// the static runtime. The object exports a plan (JSON text) and entry points;
// the runtime exports the functions below. Everything the program touches lies
// in one arena per rank whose layout is in the plan: offsets are bytes from the
// arena's start and multiples of MW_ALIGNMENT.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_ABI_H
#define MESHWRIGHT_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Every buffer of the arena starts at a multiple of this many bytes.
#define MW_ALIGNMENT 64

/// One rank's running program: communicators, threads, progress. Opaque to
/// generated code, which passes it back on each call.
typedef struct MwContext MwContext;

enum MwElementType { MW_F32 = 0, MW_F64 = 1, MW_BF16 = 2, MW_F16 = 3, MW_I32 = 4 };

//===--- what the generated object exports --------------------------------===//

/// The plan as JSON text (schema: docs/plan.md), not zero-terminated.
extern const char meshwright_plan[];
extern const uint64_t meshwright_plan_size;

#ifdef __GNUC__
#define MW_WEAK __attribute__((weak))
#else
#define MW_WEAK
#endif

/// The program as text for `meshwright replay`; only executables have it that
/// call mw_observe. Not zero-terminated.
extern const char meshwright_program[] MW_WEAK;
extern const uint64_t meshwright_program_size MW_WEAK;

/// Extensions of the processor that its code was made for, of those that
/// ProcessorFeatures.def names: a space after each, zero-terminated. Absent where
/// the code needs none of them to be named.
extern const char meshwright_processor[] MW_WEAK;

/// One optimizer step: reads the plan's inputs from the arena, updates its
/// variables in place and writes its outputs.
void meshwright_step(MwContext *context, char *arena);

/// The executable's decoder, a program of its own with a plan of its own, where it has one: reads
/// some tokens of a sequence, keeps their keys and values and writes the output `logits`.
extern const char meshwright_decoder_plan[] MW_WEAK;
extern const uint64_t meshwright_decoder_plan_size MW_WEAK;
void meshwright_decoder_step(MwContext *context, char *arena) MW_WEAK;
/// Why there is none, as text that is not zero-terminated.
extern const char meshwright_no_decoder[] MW_WEAK;
extern const uint64_t meshwright_no_decoder_size MW_WEAK;

/// Forward only, over one batch: writes the output `loss`, changes no variable.
void meshwright_eval(MwContext *context, char *arena);

//===--- what the runtime exports: traces ----------------------------------===//

/// Opens a span of a trace (`--trace`), which the matching `mw_end` closes: strings that
/// live for ever, the iteration of a loop and the bytes of the op's operands (-1: none).
/// In a step that is not traced both return at once.
void mw_begin(MwContext *context, const char *name, const char *category, const char *location,
              int64_t index, int64_t bytes);
void mw_end(MwContext *context);

/// Result `result` of the op with the id `value` in meshwright_program has just been
/// computed and lies at `address`. For `--dump`; in other runs it returns at once.
void mw_observe(MwContext *context, int32_t value, int32_t result, const void *address,
                int64_t bytes);

//===--- what the runtime exports: kernels ---------------------------------===//

/// A generated kernel, run over the half-open range [begin, end) of its
/// parallel iterations. `buffers` are the launch's operands in order.
typedef void (*MwKernel)(void *const *buffers, int64_t begin, int64_t end);

/// Runs `kernel` over [0, iterations), split into `chunks` contiguous ranges of
/// ceil(iterations / chunks), which threads take in any order. The ranges do not
/// depend on the number of threads, so results are the same with any number.
void mw_launch(MwContext *context, MwKernel kernel, void *const *buffers, int64_t iterations,
               int64_t chunks);

/// C[m,n] = alpha * op(A)[m,k] * op(B)[k,n] + beta * C, row-major f32. `lda`,
/// `ldb`, `ldc` are row strides, in elements, of the matrices as stored;
/// `transA`/`transB` say whether A is stored [k,m] and B [n,k]. Repeated
/// `batch` times, with strides between matrices in elements. The work is divided by the
/// number of threads, and the last bits depend on that number.
void mw_matmul_f32(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                   int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                   float beta, float *c, int64_t ldc, int64_t batch, int64_t strideA,
                   int64_t strideB, int64_t strideC);

/// mw_matmul_f32 where a factor or the result is bf16 or f16 (MwElementType). Sums are
/// f32; a narrow result is rounded once, after beta * C is added. A sum is divided by its length
/// alone, so that results do not depend on the number of threads. Processors that multiply
/// bf16 (AVX512-BF16) take subnormal factors and sums for 0.
void mw_matmul_mixed(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                     int64_t k, float alpha, int32_t factorType, const void *a, int64_t lda,
                     const void *b, int64_t ldb, float beta, int32_t resultType, void *c,
                     int64_t ldc, int64_t batch, int64_t strideA, int64_t strideB, int64_t strideC,
                     void *workspace);

/// Scratch bytes that call needs.
int64_t mw_matmul_mixed_workspace(int64_t m, int64_t n, int64_t k, int64_t batch);

/// Puts the choices of a mixture of experts into the order of their experts. mask: [tokens,
/// experts] of `elementType`, not 0 where a token has chosen an expert, at most k times a token;
/// tokens are `sequences` times `length`. Choice j of a token has the number j * tokens + token;
/// `blocks` divides the experts, and a block has enough slots for all of its rows. With a capacity
/// above 0, choices that so many earlier tokens of their sequence have made have no row:
///   chosen:  [k, tokens], the experts of each token, ascending, `experts` where there are fewer
///   rows:    [k, tokens], the row of each choice, -1 where there is none
///   choices: [blocks, slots], the choice of each row: by expert, then by number; -1 of a slot
///            that no row fills
///   sorted:  [blocks, slots], the expert of each row, counted from the first of its block;
///            experts / blocks of a slot that no row fills
void mw_route(MwContext *context, int64_t sequences, int64_t length, int64_t experts, int64_t k,
              int64_t blocks, int64_t slots, int64_t capacity, int32_t elementType,
              const void *mask, int32_t *chosen, int32_t *rows, int32_t *choices, int32_t *sorted);

/// How many rounds of `ofRound` rows the fullest block takes, of which `choices`, [blocks, slots],
/// is -1 where no row is; rows fill the first slots. To `rounds`.
void mw_rounds(MwContext *context, int64_t blocks, int64_t slots, int64_t ofRound,
               const int32_t *choices, int32_t *rounds);

/// The rows that part `part` of the `parts` of a round has, at most `ofPart` of each block: of at most
/// parts ofPart rows from *round as many on an equal share, rounded up; a null `round` is 0. rows:
/// [count], choices and experts: [blocks, slots], as mw_route's:
///   ownRows:    [count], the row of each choice in [blocks, ofPart], -1 of another part's
///   ownChoices, ownExperts: [blocks, ofPart], -1 behind the last slot, of several parts behind the
///   last row
void mw_rows_of_round(MwContext *context, const int32_t *round, int64_t part, int64_t parts,
                      int64_t count, int64_t blocks, int64_t slots, int64_t ofPart,
                      const int32_t *rows, const int32_t *choices, const int32_t *experts,
                      int32_t *ownRows, int32_t *ownChoices, int32_t *ownExperts);

/// Says that rows of experts go to them in so many rounds.
void mw_note_rounds(MwContext *context, int32_t rounds);

/// y[r] = w[e] x[r] for each of `rows` rows, where e is experts[r] plus the experts of the blocks
/// before; 0 for experts[r] outside [0, count / blocks). x: [rows, k], w: [count, n, k], or
/// [count, k, n] without `transB`, y: [rows, n], all of `elementType`, with sums in f32. A block
/// has rows / blocks consecutive rows. The workspace is as large as that of one product of all rows.
void mw_grouped_matmul(MwContext *context, int32_t transB, int64_t rows, int64_t n, int64_t k,
                       int64_t blocks, int64_t count, const int32_t *experts, int32_t elementType,
                       const void *x, const void *w, void *y, void *workspace);

/// c[e] = sum over the rows r of expert e of a[r] b[r]^T, plus beta c[e]. a: [rows, m],
/// b: [rows, n], c: [count, m, n]. A narrow result is rounded once, however often rows of other experts
/// lie between those of one. Otherwise as mw_grouped_matmul.
void mw_grouped_matmul_grad(MwContext *context, int64_t rows, int64_t m, int64_t n, int64_t blocks,
                            int64_t count, const int32_t *experts, int32_t factorType, const void *a,
                            const void *b, float beta, int32_t resultType, void *c,
                            void *workspace);

/// Scratch bytes that call needs: those of one product of all rows, and for a narrow result the sums of
/// one expert in f32.
int64_t mw_grouped_matmul_grad_workspace(int64_t rows, int64_t m, int64_t n, int32_t factorType,
                                         int32_t resultType);

/// Scaled dot-product attention. All tensors row-major and of `elementType`, but for
/// lse in f32; scores, softmax and sums are f32, products as mw_matmul_mixed's:
///   q, dq:     [batch, queries, heads, headDim]
///   k, dk:     [batch, keys, kvHeads, headDim]; heads % kvHeads == 0,
///              query head h reads key head h / (heads / kvHeads)
///   v, dv:     [batch, keys, kvHeads, valueDim]
///   out, dout: [batch, queries, heads, valueDim]
///   lse:       [batch, heads, queries], log of the sum of exponentials
/// Key t is visible to query s when (causal == 0 or t <= s) and
/// (window == 0 or |s - t| < window) and (chunk == 0 or s / chunk == t / chunk). Where the queries are a part of a longer sequence,
/// s is a position in that: the first query's is *queryOffset; and so are keys', of which those
/// from globalKeys on are visible to nobody. With `positions`, which need
/// `causal`, only keys of the query's own document are visible, t >= s - positions[s], and its chunks begin there.
/// Every 8 bytes are a pointer, a size or two smaller numbers, so that there is no padding.
typedef struct MwAttention {
  int64_t batch, queries, keys, heads, kvHeads, headDim;
  float scale;
  int32_t causal;
  int64_t window;
  /// Probability of dropping an attention weight; kept ones are scaled by
  /// 1 / (1 - dropout). The mask is a function of (key, stream, sequence id,
  /// global head, query, key position): see lib/Train/README.md, "Randomness".
  float dropout;
  int32_t stream;
  const int32_t *key;         ///< two words, or null without dropout
  const int32_t *sequenceIds; ///< [batch], or null without dropout
  const int32_t *headOffset;  ///< global index of local head 0, or null for 0
  int64_t globalHeads;        ///< number of heads over all ranks
  int32_t elementType;        ///< MW_F32, MW_BF16 or MW_F16
  float cap;                  ///< scores are cap * tanh(scores / cap); 0: they are not capped
  int64_t valueDim;           ///< elements of a head of v and out
  /// [heads]: slopes[h] * (t - s) is added to the capped score of query s and key t; or null.
  const float *slopes;
  /// [heads]: the score of one more key, whose value is 0, that each query sees; or null.
  const float *sinks;
  const int32_t *queryOffset; ///< position of local query 0, or null for 0
  int64_t globalQueries;      ///< number of queries over all ranks
  /// [batch][globalKeys]: of each key its position in its document; or null for sequences of one document.
  /// Queries behind the last key are in its document.
  const int32_t *positions;
  const int32_t *keyOffset; ///< position of local key 0, or null for 0
  int64_t globalKeys;       ///< number of keys over all ranks; 0: these are all
  int64_t partial;          ///< not 0: keys are a part of all, and out, dq, dk and dv in f32
  /// Positions from a local query, or key, to the next; 0: 1.
  int64_t queryStride, keyStride;
  const int32_t *lengths; ///< [batch]: keys of a sequence from this on are visible to nobody; or null
  /// [distanceCount][heads]: row t - s + globalQueries - 1 is added to the capped score of query s and
  /// key t; or null. Rows that are not there belong to queries or keys of padding.
  const float *distances;
  int64_t distanceCount;
  int64_t chunk; ///< queries see keys of their chunk alone, see AttentionMask; 0: there are no chunks
} MwAttention;

/// Scratch bytes each call needs; they are a buffer of the arena. A function of the
/// struct's sizes alone, never of the number of threads.
int64_t mw_attention_forward_workspace(const MwAttention *shape);
int64_t mw_attention_backward_workspace(const MwAttention *shape);

/// out = softmax(scale * q k^T + mask) v, never holding queries x keys scores. `before` and
/// `beforeLse` are what another call gave for other keys, to be merged, or null; they may be out
/// and lse.
void mw_attention_forward(MwContext *context, const MwAttention *shape, const void *q,
                          const void *k, const void *v, const float *before,
                          const float *beforeLse, void *out, float *lse, void *workspace);

/// Gradients of `out` with respect to q, k and v (Dao et al., FlashAttention-2), and
/// to the sinks, [heads], and to the distances, [distanceCount][heads], if there are any.
void mw_attention_backward(MwContext *context, const MwAttention *shape, const void *dout,
                           const void *q, const void *k, const void *v, const void *out,
                           const float *lse, void *dq, void *dk, void *dv, float *dsinks,
                           float *ddistances, void *workspace);

//===--- what the runtime exports: offloaded memory ------------------------===//

/// mw_host_arena: the address of the memory that the plan has on the host instead of in the arena
/// ("host_bytes"); and so on for each offload space (MemorySpaces.def).
#define MW_OFFLOAD_SPACE(Space, name, ...) char *mw_##name##_arena(MwContext *context);
#include "meshwright/runtime/MemorySpaces.def"

/// Copies between memory of an offload space and the arena. `engine` numbers the copy engines, two
/// for each offload space in the order of MemorySpaces.def: from there, 0 for the host, and to
/// there, 1. The copies of one engine run in order. A `token` of 0 or more is an async token: the call returns at
/// once, and source and target are in use until `mw_wait(token)` has returned.
void mw_transfer(MwContext *context, void *to, const void *from, int64_t bytes, int32_t engine,
                 int32_t token);

//===--- what the runtime exports: communication ---------------------------===//

enum MwReduction { MW_SUM = 0, MW_MAX = 1 };

/// The index in the plan's `programs` of the program that this rank runs.
int32_t mw_program(const MwContext *context);

/// This rank's rank in a group, 0 to the group's size - 1.
int64_t mw_group_rank(const MwContext *context, int32_t group);

/// One tensor of a collective: `count` elements, as the collective counts them.
typedef struct MwSegment {
  const void *input;
  void *output;
  int64_t count;
} MwSegment;

/// `op` is the operation's index in the plan's "collectives" table (which holds
/// its kind, group and IR location, for wait reports); `group` indexes the
/// plan's "groups": the ranks that differ only in the group's mesh axes, in
/// row-major order of those axes. Counts are elements. All calls block until
/// the result is written. Input and output do not overlap, or are exactly in place:
/// the same address for all_reduce, input = output + i * count for all_gather and
/// output = input + i * count for reduce_scatter, where i is this member's rank. Sums are
/// taken in the order of ranks, in f32 for bf16 and f16, so that they have the same bits on
/// every member, in every run and from every communicator. Where devices have parts, `count`
/// is that of one part: an all_gather's output and a reduce_scatter's input hold the parts of
/// all members, member i's at i * count. A function that takes several tensors, of one element
/// type, gives each the result that a call of its own has. The table says what each function does.
#define MW_COLLECTIVE_FUNCTION(name, tensors, kind, who)                                           \
  void mw_##name(MwContext *context, int32_t op, int32_t group,                                    \
                 int32_t elementType MW_WHO_##who MW_KIND_##kind MW_TENSORS_##tensors)
#define MW_WHO_All
#define MW_WHO_Rows
#define MW_WHO_Root , int32_t root
#define MW_WHO_From , const int32_t *from
#define MW_KIND_Moves
#define MW_KIND_Reduces , int32_t reduction
#define MW_TENSORS_One , const void *input, void *output, int64_t count
#define MW_TENSORS_Bucket , const MwSegment *segments, int64_t segmentCount

#define MW_COLLECTIVE(Op, method, name, growth, sent, tensors, kind, who, ...)                     \
  MW_COLLECTIVE_FUNCTION(name, tensors, kind, who);
#include "meshwright/runtime/Collectives.def"

/// One message for each member that takes part, on tensors in place (`input` is
/// `output`). `table` has the reduction (-1: received values replace), the number of
/// pieces that each tensor is divided into (ceil(count / pieces) elements, the last ones
/// fewer), how many of them are sent, and then for each member the rank that it sends to,
/// the first piece that it sends, the rank that it receives from, and the first piece that
/// it receives; -1 stands for no rank. No member sends a piece that it replaces.
/// `workspace` holds received values that are added; null if they replace.
void mw_exchange(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                 const int32_t *table, const MwSegment *segments, int64_t segmentCount,
                 void *workspace);

/// To, or from, member `peer`. Messages between two members arrive in the order in
/// which they are sent. `mw_send` waits until the previous message to this member of
/// this group has been received, copies the input to `buffer` and returns; `buffer` must
/// stay unchanged until the next message or until `mw_finish_sends`.
void mw_send(MwContext *context, int32_t op, int32_t group, int32_t elementType, int32_t peer,
             const void *input, int64_t count, void *buffer);
void mw_recv(MwContext *context, int32_t op, int32_t group, int32_t elementType, int32_t peer,
             void *output, int64_t count);
/// Waits until all messages of this rank have been received.
void mw_finish_sends(MwContext *context);

/// Makes the next collective asynchronous, with `token` as its async token: its call returns
/// at once, and its memory is in use until `mw_wait(token)` has returned. The collectives of a
/// rank run in the order of their calls, one after the other. `segments` may change after the call.
void mw_start(MwContext *context, int32_t token);
/// Waits until the latest collective or copy with the async token `token` has ended, if the
/// rank has not yet waited for it.
void mw_wait(MwContext *context, int32_t token);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // MESHWRIGHT_RUNTIME_ABI_H
